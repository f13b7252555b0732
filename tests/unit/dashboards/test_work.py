"""A workload's page: its life on a line of time, who it left for, what it cost, and each reason for having nothing."""

import shlex
from urllib.parse import unquote

import msgspec
import pytest
from tests.unit.dashboards.answers import story
from tests.unit.dashboards.pages import WORK, FakeClient, run_page, text_of

from gpuledger.kernel.errors import NotFound
from gpuledger_dashboards import work
from gpuledger_dashboards.work import ALLOCATED, FREE, SUSPENDED, WAITED

SUBMITTED = ("08:00", "submitted", "Submitted for alpha/a: 8 GPUs.", None)
STARTED = ("09:00", "started", "Started on h1 with 8 GPUs, allocated, protected until 10:00.", "1")
TAKEN = ("11:00", "preempted", "Preempted after 2 h for 9000, whose account is further below its share.", "1")
AGAIN = ("11:00", "waits again", "Waits again.", None)
FREELY = ("12:00", "started", "Started on h2 with 8 GPUs, unallocated, uncharged.", "2")
ENDED = ("13:00", "ended", "Ended after 1 h: completed.", "2")


def kinds(*events: tuple[str, str, str, str | None], state: str = "over") -> list[tuple[str, str, str]]:
    found = work.spans(story(*events, state=state))
    return [(span.what, span.start[11:16], span.end[11:16]) for span in found]


def test_a_life_is_cut_where_something_begins() -> None:
    assert kinds(SUBMITTED, STARTED, TAKEN, AGAIN, FREELY, ENDED) == [
        (WAITED, "08:00", "09:00"), (ALLOCATED, "09:00", "11:00"), (WAITED, "11:00", "12:00"),
        (FREE, "12:00", "13:00"),
    ]  # fmt: skip


def test_what_goes_on_ends_with_the_answer() -> None:
    assert kinds(SUBMITTED, state="waits") == [(WAITED, "08:00", "14:00")]
    assert kinds(SUBMITTED, STARTED, state="runs")[-1] == (ALLOCATED, "09:00", "14:00")
    assert kinds(SUBMITTED, state="over") == []


def test_a_run_that_stands_still_or_is_no_longer_paid_for() -> None:
    still = ("09:30", "suspended", "Suspended.", "1")
    on = ("10:00", "resumed", "Goes on.", "1")
    free = ("10:30", "class changed", "Runs unallocated from here on, uncharged and preemptible.", "1")
    assert kinds(STARTED, still, on, free, ("11:00", "ended", "Ended.", "1")) == [
        (ALLOCATED, "09:00", "09:30"), (SUSPENDED, "09:30", "10:00"), (ALLOCATED, "10:00", "10:30"),
        (FREE, "10:30", "11:00"),
    ]  # fmt: skip


def test_marks_within_a_run_do_not_cut_it() -> None:
    saved = ("10:00", "checkpointed", "Saved its state.", "1")
    assert kinds(STARTED, saved, ("11:00", "ended", "Ended.", "1")) == [(ALLOCATED, "09:00", "11:00")]


def test_the_page_answers_at_a_glance(client: FakeClient) -> None:
    client.told = story(SUBMITTED, STARTED, TAKEN, AGAIN, state="waits")
    app = run_page(WORK, workload="8851")
    text = text_of(app)
    assert "8851 on alpha, 8 GPUs of alpha/a, waits, after it was preempted once." in text
    assert "for 9000, whose account is further below its share" in app.warning[0].value
    assert "Waits for 8 GPUs on one host." in text
    assert "It starts by 2026-03-11 15:00 UTC." in text
    assert [metric.value for metric in app.metric] == ["16.0 GPU-h", "0.0 GPU-h", "0.0 GPU-h", "0.0 GPU-h"]
    assert client.asked == [("8851", None)]
    assert "gpuledger why 8851 --cluster alpha --what-if" in text


def test_what_a_hard_account_lacks_is_said(client: FakeClient) -> None:
    lacks = "alpha/a is hard and has 0.000 GPU-hours left in 2026-03; 8.000 are needed"
    client.told = msgspec.structs.replace(story(SUBMITTED, state="waits"), unpaid=lacks)
    (said,) = (one.value for one in run_page(WORK, workload="8851").info if "unallocated" in one.value)
    assert lacks in said
    client.told = story(SUBMITTED, state="waits")
    assert not [one for one in run_page(WORK, workload="8852").info if "unallocated" in one.value]


def test_a_command_to_copy_runs_nothing_that_a_workload_is_called(client: FakeClient) -> None:
    client.told = msgspec.structs.replace(story(), workload="x'; reboot #$(reboot)`reboot`")
    (block,) = (code.value for code in run_page(WORK, workload="x").code)
    command, call = block.splitlines()
    assert shlex.split(command) == [
        "gpuledger",
        "why",
        client.told.workload,
        "--cluster",
        "alpha",
        "--what-if",
    ]
    assert shlex.split(call)[0] == "curl"
    assert unquote(shlex.split(call)[1]).endswith(f"/v1/workloads/{client.told.workload}?cluster=alpha")


def test_a_cluster_in_the_address_is_asked_for(client: FakeClient) -> None:
    run_page(WORK, workload=" 8851 ", cluster="beta")
    assert client.asked == [("8851", "beta")]


def test_without_a_name_it_says_what_to_write(client: FakeClient) -> None:
    assert "Write its id as the scheduler writes it" in text_of(run_page(WORK))
    assert client.asked == []


def test_one_that_nobody_knows_is_named(client: FakeClient) -> None:
    client.unknown = NotFound("no workload '9' is known to you", hint="ids are those of the source")
    text = text_of(run_page(WORK, workload="9"))
    assert "no workload '9' is known to you" in text
    assert "ids are those of the source" in text


def test_while_no_cycle_decided_it_names_the_command(client: FakeClient) -> None:
    client.told = story(SUBMITTED, state="waits", decided=False)
    assert "gpuledger cycle --cluster alpha" in text_of(run_page(WORK, workload="8851"))


@pytest.mark.parametrize(
    ("milli", "said"), [(1000, "1 GPU of"), (500, "0.5 GPUs of"), (64_000, "64 GPUs of")]
)
def test_gpus_are_counted_as_people_do(milli: int, said: str) -> None:
    assert said in work.headline(story(SUBMITTED, gpus_milli=milli))


def test_downloads_and_tables_have_every_event() -> None:
    told = story(SUBMITTED, ("09:00", "ended", "Ended at the last evidence of life.", "1"))
    assert [row["Run"] for row in work.events(told)] == ["-", "1"]
    assert [row["what"] for row in work.csv_rows(told)] == ["submitted", "ended"]
    assert work.chain(told.decision.chain if told.decision else ())[0]["Siblings served less"] == "1"
