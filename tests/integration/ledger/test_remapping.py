"""What a mapping makes of a book: who pays, what is restated, what has no owner; people by tokens, rows by versions."""

from typing import Any

import pytest
from tests.integration.ledger.books import (
    CLUSTER,
    GPU_HOUR,
    HOUR,
    NOON,
    Ledger,
    empty,
    ended,
    granted,
    run_of,
    started,
    submitted,
    told,
)

from gpuledger.database.engine import reading, writing
from gpuledger.events.budget import AccountCreated
from gpuledger.events.envelope import Event
from gpuledger.events.mapping import MappingRule
from gpuledger.events.workload import Updated
from gpuledger.kernel.clock import seconds
from gpuledger.ledger import queries, remapping
from gpuledger.ledger.admission import Admission, admit
from gpuledger.ledger.audit import verify
from gpuledger.ledger.erasure import erase
from gpuledger.ledger.mapping import Matched, Rules, Version
from gpuledger.ledger.policies import bring_up_to_date, in_force, set_mapping, set_weights
from gpuledger.ledger.rebuild import check, rebuild, state_digest
from gpuledger.ledger.remapping import Group, Move, Payer, Unmapped, Use
from gpuledger.ledger.state import minimum_runtimes, pending

NOW_S = seconds(NOON)
VISION = MappingRule(account=("org/vision",), to="lab/vision")


def set_rules(ledger: Ledger, *rules: MappingRule, at_s: int = 0) -> None:
    with writing(ledger.engine) as writer:
        before = in_force(remapping.versions(writer), at_s)
        set_mapping(
            writer,
            rules,
            at_s,
            "ada",
            supersedes=before.org_seq if before else None,
            clock=ledger.clock,
            calendar=ledger.calendar,
        )
    with reading(ledger.engine) as reader:
        clusters = queries.clusters(reader)
    for cluster in clusters:
        with writing(ledger.engine) as writer:
            bring_up_to_date(writer, cluster, clock=ledger.clock, calendar=ledger.calendar)


def _weigh(ledger: Ledger) -> None:
    with writing(ledger.engine) as writer:
        set_weights(writer, {"H100": 2500}, 0, "ada", clock=ledger.clock, calendar=ledger.calendar)
    with writing(ledger.engine) as writer:
        bring_up_to_date(writer, CLUSTER, clock=ledger.clock, calendar=ledger.calendar)


@pytest.mark.parametrize("policy", ["mapping", "rate card"])
def test_what_policy_data_restates_is_written_in_rows_of_bounded_length(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """One transaction, as many rows as it takes, and the same in the end as in one row."""
    whole = {}
    for at_once in (100, 2):
        empty(ledger)
        monkeypatch.setattr("gpuledger.ledger.batch.RESTATED_AT_ONCE", at_once)
        for n in range(5):
            ledger.append(*run_of(NOW_S - HOUR, NOW_S, f"w{n}", gpu_model="H100"))
        _weigh(ledger) if policy == "rate card" else set_rules(ledger, VISION)
        with reading(ledger.engine) as reader:
            assert (check(reader, ledger.calendar).differences, verify(reader).ok) == ((), True)
        whole[at_once] = (ledger.digest(), ledger.net(), ledger.net("gpu_ms_weighted"))
    assert whole[2] == whole[100]
    rows = ledger.rows(
        "SELECT type, event_id, count(DISTINCT p.workload) FROM ledger.journal AS j LEFT JOIN ledger.postings AS p"
        " USING (book, seq) WHERE book = 'alpha' AND j.source = 'gpuledger/policies' GROUP BY seq, type, event_id"
        " ORDER BY seq"
    )
    assert [(type_, count) for type_, _, count in rows] == [
        ("policy.applied", 2), ("ledger.restated", 2), ("ledger.restated", 1)
    ]  # fmt: skip
    (policy_seq,) = {event_id.split("/")[1] for type_, event_id, _ in rows if type_ == "ledger.restated"}
    assert [event_id for type_, event_id, _ in rows if type_ == "ledger.restated"] == [
        f"restated/{policy_seq}/1", f"restated/{policy_seq}/2"
    ]  # fmt: skip
    with writing(ledger.engine) as writer:
        rebuild(writer, ledger.calendar)
    with reading(ledger.engine) as reader:
        assert check(reader, ledger.calendar).ok


def surveyed(ledger: Ledger, *rules: MappingRule, at_s: int = 0) -> remapping.Survey:
    with reading(ledger.engine) as reader:
        planned = [*remapping.versions(reader), Version(at_s, 2**62, rules)]
        return remapping.survey(reader, planned, NOW_S, ledger.calendar)


def unmapped(ledger: Ledger, now_s: int = NOW_S) -> list[Unmapped]:
    with reading(ledger.engine) as reader:
        return remapping.unmapped(reader, now_s)


def is_sound(ledger: Ledger) -> bool:
    """The chain verifies, and everything follows from the journal."""
    with reading(ledger.engine) as reader:
        return verify(reader).ok and check(reader, ledger.calendar).differences == ()


def ask(ledger: Ledger, workload: str = "w1") -> Admission:
    with writing(ledger.engine) as writer:
        return admit(writer, CLUSTER, workload, clock=ledger.clock, calendar=ledger.calendar)


def erased(ledger: Ledger, name: str) -> None:
    with writing(ledger.engine) as writer:
        erase(writer, name)


def one_of(ledger: Ledger, account: str, name: str = "w1", user: str = "ada", **labels: str) -> list[Event]:
    """A run of one hour of 8 GPUs, told."""
    events = [
        told(0, submitted(name, account=account, user=user, labels=labels or None)),
        told(0, started(name)),
        told(HOUR, ended(name)),
    ]
    ledger.append(*events)
    return events


def test_only_workloads_that_mean_something_else_are_read_otherwise(ledger: Ledger) -> None:
    ledger.append(*run_of(0, HOUR, "w1"), *run_of(0, HOUR, "w2", account="org/speech"))
    ledger.append(told(0, submitted("w3")), told(0, started("w4", account="org/vision")))
    rules = Rules([Version(0, 1, [VISION, MappingRule()])], CLUSTER)
    with writing(ledger.engine) as writer:
        assert remapping.read_otherwise(writer, CLUSTER, Rules(), rules) == ["w1", "w3", "w4"]
        assert remapping.read_otherwise(writer, CLUSTER, rules, rules) == []
        assert remapping.read_otherwise(writer, CLUSTER, Rules(), Rules()) == []


def test_one_row_restates_all_of_them_and_names_what_it_reverses_and_supersedes(ledger: Ledger) -> None:
    one_of(ledger, "org/vision")
    set_rules(ledger, VISION)
    set_rules(ledger, MappingRule(account=("org/*",), to="{account}-new"))
    assert ledger.used() == {"org/vision-new": 8 * GPU_HOUR}
    assert ledger.rows(
        "SELECT j.event_id, j.body->>'org_seq', j.body->>'supersedes', p.debit_account, p.credit_account,"
        " p.reverses_seq, p.reason FROM ledger.journal AS j JOIN ledger.postings AS p USING (book, seq)"
        " WHERE j.type = 'policy.applied' AND p.commodity = 'gpu_ms' ORDER BY j.seq, p.n"
    ) == [
        ("mapping/1", "1", None, "lab/vision", "lab/vision", None, None),
        ("mapping/1", "1", None, "org/vision", "org/vision", 3, "policy.applied"),
        ("mapping/2", "2", "1", "lab/vision", "lab/vision", 4, "policy.applied"),
        ("mapping/2", "2", "1", "org/vision-new", "org/vision-new", None, None),
    ]
    assert is_sound(ledger)


def test_a_new_book_takes_over_the_mapping_there_is_before_its_first_fact(ledger: Ledger) -> None:
    set_rules(ledger, VISION)
    one_of(ledger, "org/vision")
    assert ledger.net() == {("charge", "lab/vision", "w1/r1", "1970-01-01"): 8 * GPU_HOUR}
    assert is_sound(ledger)


def test_a_mapping_that_a_batch_takes_over_reads_what_was_before_and_what_it_brings(ledger: Ledger) -> None:
    ledger.append(told(0, submitted()), told(0, started()))
    ledger.append(*run_of(0, HOUR, "w2"))
    with writing(ledger.engine) as writer:
        set_mapping(writer, [VISION], 0, "ada", supersedes=None, clock=ledger.clock, calendar=ledger.calendar)
    ledger.append(told(HOUR, ended()), *run_of(0, HOUR, "w3"))
    assert ledger.used() == {"lab/vision": 24 * GPU_HOUR}
    assert is_sound(ledger)


def test_reports_as_of_before_a_mapping_do_not_know_it_before_a_rebuild_and_after(ledger: Ledger) -> None:
    """Law 6: what was said then is said for ever."""
    one_of(ledger, "org/vision")
    ledger.append(told(0, submitted("waits")))
    then = ledger.value("SELECT max(recorded_at) FROM ledger.journal WHERE book = 'alpha'")
    set_rules(ledger, VISION)
    now = ledger.value("SELECT max(recorded_at) FROM ledger.journal WHERE book = 'alpha'")
    set_rules(ledger, MappingRule(to="lab/all", klass="unallocated"), at_s=0)

    def said() -> list[dict[str, int]]:
        return [ledger.used(), ledger.used(as_of=now), ledger.used(as_of=then), ledger.used("class")]

    def waits() -> list[tuple[Any, ...]]:
        return ledger.rows(
            "SELECT account, minimum_runtime_s, since_seq, until_seq FROM ledger.waits WHERE workload = 'waits'"
            " ORDER BY since_seq"
        )

    hours = 8 * GPU_HOUR
    before = said(), waits()
    assert before[0] == [
        {"lab/all": hours},
        {"lab/vision": hours},
        {"org/vision": hours},
        {"unallocated": hours},
    ]
    assert before[1] == [
        ("org/vision", 3600, 4, 5),
        ("lab/vision", 3600, 5, 6),
        ("lab/all", 0, 6, None),
    ]
    with writing(ledger.engine) as writer:
        rebuild(writer, ledger.calendar)
    assert (said(), waits()) == before
    assert is_sound(ledger)


def test_a_start_that_names_another_account_is_mapped_with_that(ledger: Ledger) -> None:
    set_rules(ledger, VISION, MappingRule(account=("org/speech",), to="lab/speech", klass="unallocated"))
    ledger.append(*run_of(0, HOUR), *run_of(0, HOUR, "w2", account="org/x"))
    ledger.append(
        *run_of(0, 2 * HOUR, "w3"), told(1, started("w3", account="org/speech"), source="reconcile/x")
    )
    ledger.append(told(0, started("w4", account="org/speech")), told(HOUR, ended("w4")))
    found = {(code, account, run.split("/")[0]) for code, account, run, _ in ledger.net()}
    assert found == {
        ("charge", "lab/vision", "w1"),
        ("charge", "unmapped/org/x", "w2"),
        ("unallocated", "lab/speech", "w3"),
        ("unallocated", "lab/speech", "w4"),
    }
    assert is_sound(ledger)


def test_a_survey_says_which_rule_reads_what_and_what_moves_where(ledger: Ledger) -> None:
    one_of(ledger, "org/vision", "w1", partition="a")
    one_of(ledger, "org/vision", "w2", partition="a")
    one_of(ledger, "org/vision", "w3", partition="b")
    ledger.append(told(NOW_S - HOUR, submitted("open")), told(NOW_S - HOUR, started("open")))
    ledger.append(told(0, started("lost")), told(HOUR, ended("lost")))
    free = MappingRule(labels={"partition": ("b",)}, klass="unallocated")
    found = surveyed(ledger, free, VISION)
    hours, first, second = 8 * GPU_HOUR, Matched(2**62, 1), Matched(2**62, 2)
    partition_a, partition_b = (("partition", "a"),), (("partition", "b"),)
    assert dict(found.groups) == {
        Group(CLUSTER, "org/vision", partition_a, second, "lab/vision", "allocated"): Use(2, 2 * hours),
        Group(CLUSTER, "org/vision", partition_b, first, "org/vision", "unallocated"): Use(1, hours),
        Group(CLUSTER, "org/vision", (), second, "lab/vision", "allocated"): Use(1, hours),
        Group(CLUSTER, "", (), None, "unmapped/unknown", "allocated"): Use(1, hours),
    }
    assert dict(found.moves) == {
        Payer(CLUSTER, "lab/vision", "allocated"): Move(0, 3 * hours),
        Payer(CLUSTER, "org/vision", "allocated"): Move(4 * hours, 0),
        Payer(CLUSTER, "org/vision", "unallocated"): Move(0, hours),
    }
    assert found.periods == {(CLUSTER, "1970-01"): 3 * hours, (CLUSTER, "2026-12"): hours}
    assert (found.restated, found.accounts) == (4, {"lab/vision", "org/vision", "unmapped/unknown"})
    assert surveyed(ledger, MappingRule()).restated == 0


def test_what_has_no_owner_is_counted_with_what_waits_and_what_runs(ledger: Ledger) -> None:
    assert unmapped(ledger) == []
    ledger.append(told(0, started("lost")), told(HOUR, ended("lost")))
    assert unmapped(ledger) == [Unmapped(CLUSTER, "unmapped/unknown", 1, 8 * GPU_HOUR)]
    set_rules(ledger, VISION)
    ledger.append(told(0, submitted("w2", account="org/x")), told(0, submitted("w3", account="org/y")))
    ledger.append(told(NOW_S - 5 * HOUR, submitted("w4", account="org/x", time_limit_s=2 * HOUR)))
    ledger.append(told(NOW_S - 5 * HOUR, started("w4")), *run_of(0, HOUR))
    found = unmapped(ledger)
    assert found == [
        Unmapped(CLUSTER, "unmapped/org/x", 2, 16 * GPU_HOUR),
        Unmapped(CLUSTER, "unmapped/unknown", 1, 8 * GPU_HOUR),
        Unmapped(CLUSTER, "unmapped/org/y", 1, 0),
    ]
    assert [u.foreign for u in found] == ["org/x", "unknown", "org/y"]
    assert unmapped(ledger, NOW_S - 4 * HOUR)[0].gpu_ms == 8 * GPU_HOUR
    with reading(ledger.engine) as reader:
        assert remapping.unmapped(reader, NOW_S, "beta") == []


@pytest.fixture
def adas(ledger: Ledger) -> Ledger:
    """A rule about one person, set before that person was ever seen; two people's work."""
    set_rules(ledger, MappingRule(user=("grace",), to="lab/grace"), MappingRule(to="lab/rest"))
    one_of(ledger, "org/vision", "w1", user="grace")
    one_of(ledger, "org/vision", "w2", user="ada")
    return ledger


def test_a_rule_about_a_person_matches_the_token_and_no_name_is_journalled(adas: Ledger) -> None:
    assert adas.used() == {"lab/grace": 8 * GPU_HOUR, "lab/rest": 8 * GPU_HOUR}
    token = adas.value("SELECT token FROM side.user_keys WHERE name = 'grace'")
    bodies = adas.rows("SELECT body::text FROM ledger.journal WHERE body->>'policy' = 'mapping'")
    assert [(token in body, "grace" in body.replace("lab/grace", "")) for (body,) in bodies] == [
        (True, False)
    ] * 2
    assert is_sound(adas)


def test_who_is_erased_keeps_the_payer_and_an_old_event_that_comes_again_moves_nothing(adas: Ledger) -> None:
    """The token stays in rule and fact; a second submission that differs by its person alone leaves both standing."""
    with reading(adas.engine) as reader:
        digest = state_digest(reader)
    again = told(0, submitted("w1", account="org/vision", user="grace"))
    erased(adas, "grace")
    assert adas.append(again).accepted == [(again.source, again.id)]
    with reading(adas.engine) as reader:
        assert state_digest(reader) == digest
    one_of(adas, "org/vision", "w3", user="grace")
    assert adas.used() == {"lab/grace": 8 * GPU_HOUR, "lab/rest": 16 * GPU_HOUR}, "nobody knows who that was"
    assert is_sound(adas)


def test_an_admission_promises_the_time_of_whom_the_rules_name(ledger: Ledger) -> None:
    for account in ("lab", "lab/vision"):
        ledger.append(told(0, AccountCreated(account=account)))
    ledger.append(told(0, granted("lab/vision", "2026-12", 100 * GPU_HOUR)))
    rule = MappingRule(account=("org/vision",), to="lab/vision", minimum_runtime_s=2 * HOUR)
    set_rules(ledger, rule, MappingRule(labels={"qos": ("scavenge",)}, klass="unallocated"))
    ledger.append(
        told(NOW_S, submitted()), told(NOW_S, submitted("w2", account="org/x", labels={"qos": "scavenge"}))
    )
    with reading(ledger.engine) as reader:
        assert minimum_runtimes(reader, CLUSTER, ["w1", "w2", "w3"]) == {"w1": 2 * HOUR, "w2": 0}
        assert [(p.workload, p.account, p.minimum_runtime_s) for p in pending(reader, CLUSTER, NOW_S)] == [
            ("w1", "lab/vision", 2 * HOUR),
            ("w2", "org/x", 0),
        ]
    decided = ask(ledger).decision
    assert (decided.account, decided.klass, decided.hold_gpu_ms) == ("lab/vision", "allocated", 16 * GPU_HOUR)
    assert ledger.balance("lab/vision", "2026-12").held_gpu_ms == 16 * GPU_HOUR
    refused = ask(ledger, "w2").decision
    assert (refused.klass, refused.reason) == ("unallocated", "its mapping rule says to run unallocated")
    assert is_sound(ledger)


def test_what_was_decided_stays_decided_and_its_payer_follows_the_rules(ledger: Ledger) -> None:
    """Class and hold of an admission stand; the hold of a run is the payer's, and moves with it."""
    for account in ("lab", "lab/all", "org", "org/vision"):
        ledger.append(told(0, AccountCreated(account=account)))
    ledger.append(told(NOW_S, submitted(minimum_runtime_s=HOUR)))
    ask(ledger)
    ledger.append(told(NOW_S, started()))
    assert ledger.balance("org/vision", "2026-12").held_gpu_ms == 8 * GPU_HOUR
    set_rules(ledger, MappingRule(to="lab/all", klass="unallocated", minimum_runtime_s=0))
    assert ledger.rows("SELECT account, class FROM ledger.segments WHERE until_seq IS NULL") == [
        ("lab/all", "allocated")
    ]
    assert ledger.balance("org/vision", "2026-12").held_gpu_ms == 0
    assert ledger.balance("lab/all", "2026-12").held_gpu_ms == 8 * GPU_HOUR
    ledger.append(told(NOW_S + HOUR, ended()))
    assert ledger.balance("lab/all", "2026-12").charged_gpu_ms == 8 * GPU_HOUR
    assert is_sound(ledger)


def test_what_was_moved_is_mapped_by_what_is_said_of_it_before_and_since(ledger: Ledger) -> None:
    """The rules that come later read each part of a run by the names that it had; they never cut it."""
    ledger.append(told(0, submitted(account="ours")), told(0, started()), told(4 * HOUR, ended()))
    ledger.append(told(HOUR, Updated(cluster=CLUSTER, workload="w1", account="theirs")))
    ledger.append(told(2 * HOUR, Updated(cluster=CLUSTER, workload="w1", labels={"partition": "long"})))
    assert ledger.used() == {"ours": 8000 * HOUR, "theirs": 8000 * 3 * HOUR}
    rules = (
        MappingRule(labels={"partition": ("long",)}, to="lab/long"),
        MappingRule(account=("ours",), to="lab/old"),
        MappingRule(account=("theirs",), to="lab/new"),
    )
    (group,) = dict(surveyed(ledger, *rules).groups)
    assert (group.foreign, group.labels, group.account) == ("theirs", (("partition", "long"),), "lab/long")
    set_rules(ledger, *rules)
    parts = {"lab/old": 8000 * HOUR, "lab/new": 8000 * HOUR, "lab/long": 8000 * 2 * HOUR}
    assert ledger.used() == parts
    assert is_sound(ledger)
    set_rules(ledger, MappingRule(account=("ours", "theirs"), to="lab/old"), at_s=NOW_S)
    assert ledger.used() == parts, "the rules of the submission's moment count for all of it"
    set_rules(ledger, MappingRule(account=("ours", "theirs"), to="lab/one"))
    assert ledger.used() == {"lab/one": 8000 * 4 * HOUR}
    assert is_sound(ledger)
