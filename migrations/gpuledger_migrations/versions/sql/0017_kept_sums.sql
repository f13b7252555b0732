-- Code of before 0015 posts and moves the head of a book, and knows nothing of sums by day. Whoever adds to the sums says
-- so by that; where the head moves and nobody has, the database adds what the new rows post. Both look at one batch: the
-- sums come before the head, and a transaction touches one book.

CREATE FUNCTION ledger.note_day_sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('gpuledger.summed', 'yes', true);
    RETURN NULL;
END $$;

CREATE FUNCTION ledger.keep_day_sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('gpuledger.summed', true) IS DISTINCT FROM 'yes' THEN
        INSERT INTO ledger.day_sums AS s (book, account, day, used, charged, credited, unallocated)
            SELECT p.book, leg.account, p.effective_on,
                   coalesce(-sum(leg.amount) FILTER (WHERE leg.is_used), 0)::bigint,
                   coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'charge'), 0)::bigint,
                   coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'credit'), 0)::bigint,
                   coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'unallocated'), 0)::bigint
            FROM ledger.postings AS p CROSS JOIN LATERAL (
                SELECT account, amount,
                       pot = 'budget' AND p.code NOT IN ('expiry', 'rollover')
                       AND (amount < 0 AND (p.code <> 'grant' OR p.reason IS DISTINCT FROM 'ledger.settled')
                            OR p.code NOT IN ('grant', 'transfer')) AS is_used,
                       CASE WHEN (p.code, pot) IN
                           (('charge', 'spent'), ('credit', 'credited'), ('unallocated', 'unallocated'))
                           AND p.reason IS DISTINCT FROM 'ledger.settled' THEN p.code END AS stands
                FROM (VALUES (p.debit_pot, p.debit_account, -p.amount), (p.credit_pot, p.credit_account, p.amount))
                    AS side (pot, account, amount)) AS leg
            WHERE p.book = NEW.book AND p.seq > OLD.last_seq AND p.seq <= NEW.last_seq
                AND p.recorded_at > OLD.last_recorded_at
                AND p.commodity = 'gpu_ms_weighted' AND (leg.is_used OR leg.stands IS NOT NULL)
            GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (book, account, day) DO UPDATE SET used = s.used + excluded.used,
            charged = s.charged + excluded.charged, credited = s.credited + excluded.credited,
            unallocated = s.unallocated + excluded.unallocated;
    END IF;
    PERFORM set_config('gpuledger.summed', '', true);
    RETURN NULL;
END $$;

CREATE TRIGGER note_day_sums AFTER INSERT ON ledger.day_sums
    FOR EACH STATEMENT EXECUTE FUNCTION ledger.note_day_sums();
CREATE TRIGGER keep_day_sums AFTER UPDATE OF last_seq ON ledger.books
    FOR EACH ROW WHEN (NEW.last_seq > OLD.last_seq) EXECUTE FUNCTION ledger.keep_day_sums();

-- What such code posted since 0015 is summed up now. Large books may need longer than a migration is given otherwise.
SET LOCAL statement_timeout = 0;
LOCK TABLE ledger.books IN EXCLUSIVE MODE;
DELETE FROM ledger.day_sums;
INSERT INTO ledger.day_sums (book, account, day, used, charged, credited, unallocated)
    SELECT p.book, leg.account, p.effective_on, coalesce(-sum(leg.amount) FILTER (WHERE leg.is_used), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'charge'), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'credit'), 0)::bigint,
           coalesce(sum(leg.amount) FILTER (WHERE leg.stands = 'unallocated'), 0)::bigint
    FROM ledger.postings AS p CROSS JOIN LATERAL (
        SELECT account, amount,
               pot = 'budget' AND p.code NOT IN ('expiry', 'rollover')
               AND (amount < 0 AND (p.code <> 'grant' OR p.reason IS DISTINCT FROM 'ledger.settled')
                    OR p.code NOT IN ('grant', 'transfer')) AS is_used,
               CASE WHEN (p.code, pot) IN (('charge', 'spent'), ('credit', 'credited'), ('unallocated', 'unallocated'))
                    AND p.reason IS DISTINCT FROM 'ledger.settled' THEN p.code END AS stands
        FROM (VALUES (p.debit_pot, p.debit_account, -p.amount), (p.credit_pot, p.credit_account, p.amount))
            AS side (pot, account, amount)) AS leg
    WHERE p.commodity = 'gpu_ms_weighted' AND (leg.is_used OR leg.stands IS NOT NULL)
    GROUP BY 1, 2, 3;
