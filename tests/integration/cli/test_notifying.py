"""``notify``: dry unless told otherwise, told once, and without a secret in sight."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger
from tests.integration.notify.receiving import SECRET, Mailbox, Receiver, mailbox, receiver, write_recipients
from tests.integration.notify.spending import roll_up

from gpuledger.database.engine import make_engine
from gpuledger.events.envelope import make
from gpuledger.events.workload import Ended, Started, Submitted
from gpuledger.ingest.intake import Intake
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock, seconds

MAILS = """
mails:
  leads: {to: [lead@example.org], account: org/vision}
"""


@pytest.fixture
def there() -> Iterator[Receiver]:
    with receiver() as found:
        yield found


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with mailbox() as found:
        yield found


@pytest.fixture
def told(ledger: Ledger, there: Receiver, box: Mailbox, tmp_path: Path) -> Ledger:
    """A ledger with an account that has spent 60 % of its budget, and a webhook and a person who are to be told."""
    engine = make_engine(ledger.url)
    roll_up(engine, "org/vision", 60, period=f"{SystemClock().now():%Y-%m}")
    engine.dispose()
    more = {
        "GPULEDGER_NOTIFICATIONS": str(write_recipients(tmp_path, there.url, MAILS)),
        "GPULEDGER_SMTP_HOST": "127.0.0.1",
        "GPULEDGER_SMTP_PORT": str(box.port),
        "GPULEDGER_SMTP_SECURITY": "none",
        "GPULEDGER_SMTP_FROM": "gpuledger@example.org",
    }
    return Ledger({**ledger.settings, **more}, ledger.url)


def test_without_send_nothing_is_sent(told: Ledger, there: Receiver, box: Mailbox) -> None:
    ran = told("notify", "run")
    assert ran.status == 0, ran.err
    assert "+ org/vision: 50 % of the budget of" in ran.out
    assert "2 new notices, 0 sent, 0 failed, 0 waiting" in ran.out
    assert "--send does both" in ran.err
    assert told("notify", "list", "--json").json == {"notices": []}
    assert (there.received, box.mails) == ([], [])


def test_with_send_each_is_told_once(told: Ledger, there: Receiver, box: Mailbox) -> None:
    first = told.done("notify", "run", "--send")
    assert (len(first["sent"]), first["failed"]) == (
        3,
        [],
    )  # the node above is the webhook's to know, not the lead's
    assert sorted(got.json["data"]["account"] for got in there.received) == ["org", "org/vision"]
    ((to, mail),) = box.mails
    assert to == ("lead@example.org",)
    assert mail["Subject"].startswith("org/vision: 50 % of the budget")
    again = told.done("notify", "run", "--send")
    assert (again["noticed"], again["sent"]) == ([], [])
    assert len(there.received) == 2


def test_what_was_told_is_listed_and_shown_as_its_readers_have_it(told: Ledger, there: Receiver) -> None:
    told.done("notify", "run", "--send")
    listed = told.done("notify", "list")["notices"]
    assert {way["state"] for each in listed for way in each["deliveries"]} == {"sent"}
    assert "lead@example.org" not in json.dumps(listed)
    (own,) = [each for each in listed if each["account"] == "org/vision"]
    assert told("notify", "show", own["id"]).out.startswith("Subject: org/vision: 50 %")
    assert told("notify", "show", own["id"], "--html").out.startswith("<!doctype html>")
    (sent,) = [got for got in there.received if got.id == own["id"]]
    assert told("notify", "show", own["id"], "--json").out.rstrip("\n") == sent.body.decode()
    assert own["id"] in told("notify", "list").out
    assert told("notify", "show", "ntc_none").status == 4


def test_what_fails_is_told_with_75_and_tried_again_later(told: Ledger, there: Receiver) -> None:
    there.answers = [404, 404]
    ran = told("notify", "run", "--send")
    assert ran.status == 75
    assert ran.out.count(" to webhook/chat: answers 404") == 2
    told_of = told.done("notify", "list")["notices"][0]["deliveries"]
    assert {(each["state"], each["attempts"]) for each in told_of if each["target"] == "webhook/chat"} == {
        ("due", 1)
    }
    assert told("notify", "run", "--send").status == 0, "it is not due yet"


def test_a_trial_arrives_where_it_is_sent(told: Ledger, there: Receiver, box: Mailbox) -> None:
    assert told.done("notify", "test", "chat")["targets"] == {"webhook/chat": "not sent"}
    assert there.received == []
    assert told.done("notify", "test", "chat", "--send")["targets"] == {"webhook/chat": "sent"}
    assert there.received[0].json["type"] == "test"
    assert list(told.done("notify", "test", "leads", "--send")["targets"].values()) == ["sent"]
    assert box.mails[0][1]["Subject"] == "A test of notifications"
    there.answers = [410]
    failed = told("notify", "test", "chat", "--send")
    assert failed.status == 75
    assert "gone for good" in failed.out
    nobody = told("notify", "test", "hcat", "--json")
    assert nobody.status == 4
    assert nobody.problem["hint"] == "the file has chat, leads"


def test_no_secret_is_printed(told: Ledger, there: Receiver) -> None:
    there.answers = [500] * 12
    said = [told("notify", "run", "--send"), told("notify", "list"), told("notify", "test", "chat", "--send")]
    for ran in said:
        for secret in (SECRET[6:], "/hooks", "lead@example.org"):
            assert secret not in ran.out + ran.err


def test_without_a_file_it_says_which_variable_is_missing(ledger: Ledger) -> None:
    ran = ledger("notify", "run", "--json")
    assert ran.status == 2
    assert "GPULEDGER_NOTIFICATIONS" in ran.problem["error"]
    assert "docs/notifications.md" in ran.problem["hint"]


def test_from_facts_through_a_real_roll_up_to_a_receiver(
    ledger: Ledger, there: Receiver, tmp_path: Path
) -> None:
    """Eight GPUs for half an hour are four of the five GPU-hours that were granted."""
    days = Calendar()
    at_s = (seconds(SystemClock().now()) // 3600 - 2) * 3600
    period = days.period_of(days.day_of(at_s))
    budget = tmp_path / "budget.yaml"
    grant = f"{{cluster: alpha, period: {period}, gpu_hours: 5}}"
    budget.write_text(
        "clusters: {alpha: {gpus: 16, model: h100}}\n"
        f"accounts: {{org/vision: {{share: 1, grants: [{grant}]}}}}\n"
    )
    ledger.done("budget", "apply", budget, "--from", days.days_of(period)[0], "--yes")
    named = {"cluster": "alpha", "workload": "w"}
    facts = [
        (0, Submitted(**named, account="org/vision", user="ada", gpus_milli=8000, time_limit_s=86_400)),
        (0, Started(**named, run="r1", attempt=1, gpus_milli=8000, hosts=["h1"])),
        (1800, Ended(**named, run="r1", reason="completed")),
    ]
    engine = make_engine(ledger.url)
    Intake(engine, SystemClock(), days).take(
        [make(id=f"{n}", source="test", at_s=at_s + s, data=fact)[0] for n, (s, fact) in enumerate(facts)]
    )
    engine.dispose()
    assert ledger("rollup").status == 0
    told = Ledger(
        {**ledger.settings, "GPULEDGER_NOTIFICATIONS": str(write_recipients(tmp_path, there.url))}, ledger.url
    )
    told.done("notify", "run", "--send")
    assert {(got.json["data"]["account"], got.json["data"]["threshold_percent"]) for got in there.received} == {
        ("org", 80), ("org/vision", 80),
    }  # fmt: skip
    data = there.received[0].json["data"]
    assert (data["spent_gpu_ms"], data["given_gpu_ms"]) == (8000 * 1800, 5 * 3_600_000)
