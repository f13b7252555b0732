"""From a policy file to what it changes."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import reading, writing
from gpuledger.ingest import policy_file
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Refused
from gpuledger.ledger import policies


def planned(engine: sa.Engine, tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with reading(engine) as reader:
        return policy_file.plan(reader, policy_file.read(path), 0)


def test_only_weights_that_differ_are_changes(engine: sa.Engine, tmp_path: Path) -> None:
    assert planned(engine, tmp_path, "rate_card: {b200: 2500, a100: 1000, h100: 0}") == [
        "~ weight   b200  1000 -> 2500 per mille",
        "~ weight   h100  1000 -> 0 per mille",
    ]
    assert planned(engine, tmp_path, "") == []


@pytest.mark.parametrize(
    "text", ["rate_card: {h100: 1.5}", "rate_card: {h100: 2000000}", "rate_card: [h100]"]
)
def test_a_wrong_file_names_the_place(engine: sa.Engine, tmp_path: Path, text: str) -> None:
    with pytest.raises(Refused, match="rate_card") as caught:
        planned(engine, tmp_path, text)
    assert "docs/policy-file.md" in caught.value.hint


TABLE = """
xid_table:
  unhealthy: [79, 48]
  draining: [63]
  application: [13]
  repeated: {74: {times: 2, within_h: 24}}
  remap_failed: unhealthy
  remap_pending: draining
  lost: unhealthy
"""


def test_a_table_shows_what_it_changes_by_code(engine: sa.Engine, tmp_path: Path) -> None:
    changes = planned(engine, tmp_path, TABLE)
    assert "~ xid      94  draining -> nothing" in changes
    assert "~ xid      119  unhealthy -> nothing" in changes
    assert not [change for change in changes if " 79 " in change or " 74 " in change or "remap" in change]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("draining: [63]", "draining: [79]", "stands twice"),
        ("draining: [63]", "draining: [0]", "xid_table.draining.0"),
        ("  lost: unhealthy", "", "xid_table.lost"),
        ("times: 2", "times: 1", "times"),
        ("remap_pending: draining", "remap_pending: broken", "remap_pending"),
        ("unhealthy: [79, 48]", "unhealthy: [79, 48]\n  ecc: [1]", "xid_table.ecc"),
    ],
)
def test_a_wrong_table_names_the_place(
    engine: sa.Engine, tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in TABLE
    with pytest.raises(Refused, match=told):
        planned(engine, tmp_path, TABLE.replace(old, new))


def test_settings_show_what_they_change_and_for_whom(engine: sa.Engine, tmp_path: Path) -> None:
    text = "settings: {horizon_s: 5, grace_s: null}\ncluster_settings: {alex: {quantum_s: 600}, fau: {}}"
    assert planned(engine, tmp_path, text) == [
        "~ setting  horizon_s  not set -> 5",
        "~ setting  alex: quantum_s  not set -> 600",
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("settings: {horizont_s: 5}", "settings: .*horizont_s is not known; did you mean horizon_s"),
        ("settings: {horizon_s: 0}", "horizon_s is 0; write a whole number from 1"),
        ("settings: {horizon_s: 1.5}", "settings: .*horizon_s is 1.5"),
        ("settings: {horizon_s: true}", "settings: .*horizon_s is True"),
        ("settings: [horizon_s]", "settings: Input should be a valid dict"),
        ("settings: {quantm_s: 3}", "settings: policy setting quantm_s is not known; did you mean quantum_s"),
        ("cluster_settings: {alex: {grace: 5}}", "cluster_settings.alex: .*did you mean grace_s"),
        ("settings: {quantum_s: 30000}", "exceeds the protection cap"),
        ("settings: {quantum_s: 20000}\ncluster_settings: {alex: {protection_cap_s: 10000}}", "exceeds"),
    ],
)
def test_wrong_settings_are_refused(engine: sa.Engine, tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        planned(engine, tmp_path, text)


def test_settings_that_would_not_go_with_those_of_a_later_moment_are_refused(
    engine: sa.Engine, tmp_path: Path
) -> None:
    clock, calendar = SystemClock(), Calendar()
    with writing(engine) as writer:
        policies.put_settings(
            writer, "alex", {"protection_cap_s": 1000}, 500, "ada", clock=clock, calendar=calendar
        )
    with pytest.raises(Refused, match="exceeds the protection cap of 1000 s"):
        planned(engine, tmp_path, "settings: {notice_s: 2000}")
    text = "settings: {notice_s: 2000}\ncluster_settings: {alex: {notice_s: 900}}"
    assert len(planned(engine, tmp_path, text)) == 2
