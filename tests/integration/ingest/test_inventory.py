"""From an inventory file to commands: a change a host, only what differs."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from gpuledger.database.engine import reading
from gpuledger.events import host
from gpuledger.ingest import inventory
from gpuledger.ingest.changes import Change, apply
from gpuledger.ingest.intake import Intake
from gpuledger.ingest.inventory import Installed, even_hosts
from gpuledger.kernel.errors import Refused

FILE = """
clusters:
  alpha:
    hosts:
      - {name: a1, gpus: 8, model: h100}
      - {name: a2, gpus: 4, model: h100}
  beta: {gpus: 10, model: b200, gpus_per_host: 8}
"""


def planned(engine: sa.Engine, tmp_path: Path, text: str, at_s: int = 0) -> list[Change]:
    path = tmp_path / "inventory.yaml"
    path.write_text(text)
    with reading(engine) as reader:
        return inventory.plan(reader, inventory.read(path), at_s)


def test_a_new_ledger_gets_every_host(engine: sa.Engine, tmp_path: Path) -> None:
    assert [change.shown for change in planned(engine, tmp_path, FILE)] == [
        "+ host     alpha a1  8 x h100",
        "+ host     alpha a2  4 x h100",
        "+ host     beta beta-0001  8 x b200",
        "+ host     beta beta-0002  2 x b200",
    ]


def test_applied_again_nothing_changes(intake: Intake, tmp_path: Path) -> None:
    apply(intake, planned(intake.engine, tmp_path, FILE), 0, inventory.SOURCE)
    assert planned(intake.engine, tmp_path, FILE) == []


def test_partial_use_is_said_of_a_cluster_or_a_host_from_a_moment_on(intake: Intake, tmp_path: Path) -> None:
    apply(intake, planned(intake.engine, tmp_path, FILE), 0, inventory.SOURCE)
    text = FILE.replace("  alpha:\n", "  alpha:\n    partial_use: true\n").replace(
        "{name: a2, gpus: 4, model: h100}", "{name: a2, gpus: 4, model: h100, partial_use: false}")  # fmt: skip
    changes = planned(intake.engine, tmp_path, text, 3600)
    assert [change.shown for change in changes] == ["~ host     alpha a1  8 x h100 -> 8 x h100, partial use"]
    apply(intake, changes, 3600, inventory.SOURCE)
    assert planned(intake.engine, tmp_path, text, 3600) == []
    assert [change.shown for change in planned(intake.engine, tmp_path, FILE, 7200)] == [
        "~ host     alpha a1  8 x h100, partial use -> 8 x h100"
    ]


def test_hosts_that_changed_or_are_left_out_and_clusters_that_are_not_named(
    intake: Intake, tmp_path: Path
) -> None:
    apply(intake, planned(intake.engine, tmp_path, FILE), 0, inventory.SOURCE)
    later = "clusters: {alpha: {hosts: [{name: a1, gpus: 8, model: h200}, {name: a3, gpus: 1, model: h100}]}}"
    changes = planned(intake.engine, tmp_path, later, 3600)
    assert [change.shown for change in changes] == [
        "~ host     alpha a1  8 x h100 -> 8 x h200",
        "- host     alpha a2  4 x h100",
        "+ host     alpha a3  1 x h100",
    ]
    assert isinstance(changes[1].facts[0], host.Retired)
    apply(intake, changes, 3600, inventory.SOURCE)
    with intake.engine.connect() as connection:
        rows = connection.exec_driver_sql(
            "SELECT host, gpus, gpu_model, extract(epoch FROM from_at)::int, extract(epoch FROM to_at)::int"
            " FROM ledger.hosts WHERE book = 'alpha' AND until_seq IS NULL ORDER BY host, from_at"
        ).fetchall()
    assert [tuple(row) for row in rows] == [
        ("a1", 8, "h100", 0, 3600),
        ("a1", 8, "h200", 3600, None),
        ("a2", 4, "h100", 0, 3600),
        ("a3", 1, "h100", 3600, None),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("clusters: {a: {}}", "write either hosts, or gpus and model"),
        ("clusters: {a: {gpus: 1, model: m, hosts: []}}", "write either hosts, or gpus and model"),
        ("clusters: {a: {gpus: 1}}", "model is missing"),
        (
            "clusters: {a: {hosts: [{name: h, gpus: 1, model: m}, {name: h, gpus: 1, model: m}]}}",
            "host h stands twice",
        ),
        ("clusters: {a: {hosts: [{name: h, gpus: 0, model: m}]}}", r"clusters\.a\.hosts\.0\.gpus"),
        (
            "clusters: {a: {hosts: [{name: h, gpus: 1, model: m, color: red}]}}",
            r"hosts\.0\.color is no key; there are name",
        ),
        ("clusters: {~org: {gpus: 1, model: m}}", r"clusters\.~org\.\[key\]"),
        ('clusters: {a: {hosts: [{name: "h\\0", gpus: 1, model: m}]}}', r"clusters\.a\.hosts\.0\.name"),
        ("clusters: {'': {gpus: 1, model: m}}", r"clusters\.\.\[key\]"),
    ],
)
def test_a_wrong_file_names_the_place(engine: sa.Engine, tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(Refused, match=expected) as caught:
        planned(engine, tmp_path, text)
    assert "docs/inventory-file.md" in caught.value.hint


def test_the_last_of_even_hosts_holds_what_is_left() -> None:
    assert even_hosts("c", 10, "m", 4) == {
        "c-0001": Installed(4, "m"),
        "c-0002": Installed(4, "m"),
        "c-0003": Installed(2, "m"),
    }
    assert even_hosts("c", 8, "m", 4).keys() == {"c-0001", "c-0002"}
    assert even_hosts("c", 0, "m", 4) == {}


def test_what_was_installed_earlier_can_be_told_later(intake: Intake, tmp_path: Path) -> None:
    apply(intake, planned(intake.engine, tmp_path, FILE, 7200), 7200, inventory.SOURCE)
    assert len(planned(intake.engine, tmp_path, FILE, 3600)) == 4
    apply(intake, planned(intake.engine, tmp_path, FILE, 3600), 3600, inventory.SOURCE)
    assert planned(intake.engine, tmp_path, FILE, 3600) == planned(intake.engine, tmp_path, FILE, 9999) == []
