CREATE TABLE ledger.day_sums (
    book text NOT NULL,
    account text NOT NULL,
    day date NOT NULL,
    used bigint NOT NULL,
    charged bigint NOT NULL,
    credited bigint NOT NULL,
    unallocated bigint NOT NULL,
    CONSTRAINT pk_day_sums PRIMARY KEY (book, account, day)
);
COMMENT ON TABLE ledger.day_sums IS 'weighted sums of postings by account and the organisation''s day';
COMMENT ON COLUMN ledger.day_sums.day IS 'that movements belong to, whenever they were booked';
COMMENT ON COLUMN ledger.day_sums.used IS 'of the budget, less what came back; no lots';
COMMENT ON COLUMN ledger.day_sums.charged IS 'without what was posted back of adjustments';
GRANT SELECT, INSERT, UPDATE, DELETE ON ledger.day_sums TO gpuledger_writer;

-- Large books may need longer than a migration is given otherwise.
SET LOCAL statement_timeout = 0;
-- Batches that are under way end first: what they post is summed up too.
LOCK TABLE ledger.books IN EXCLUSIVE MODE;
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
