"""``gpuledger budget apply``: the difference first, each change once, nothing unknown."""

from pathlib import Path

import pytest
from tests.commands.fixtures import Ledger

FILE = """
clusters:
  alpha: {gpus: 20, model: h100, gpus_per_host: 8}
accounts:
  org/vision: {share: 3, grants: [{cluster: alpha, period: 2026-03, gpu_hours: 100}]}
  org/speech: {share: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "budget.yaml"
    path.write_text(FILE)
    return path


def shares(ledger: Ledger) -> dict[str, int]:
    found = ledger.rows(
        "SELECT DISTINCT ON (account) account, share FROM ledger.shares ORDER BY account, from_at DESC, set_seq DESC"
    )
    return dict(found)


def test_the_difference_is_shown_first(ledger: Ledger, file: Path) -> None:
    ran = ledger("budget", "apply", file, "--from", "2026-03-01", "--dry-run", "--json")

    assert ran.status == 0
    expected = [
        "+ account  org",
        "+ account  org/speech",
        "+ account  org/vision",
        "~ share    org/speech  1 (default) -> 1",
        "~ share    org/vision  1 (default) -> 3",
        "~ cluster  alpha  0 -> 20 GPUs of h100 on 3 hosts",
        "+ grant    org/vision  alpha 2026-03  100 GPU-hours",
    ]
    assert ran.json == {"changes": expected, "applied": False, "opened": {}}
    assert ran.err.splitlines() == expected
    assert ledger.heads() == []


def test_applying_twice_changes_nothing(ledger: Ledger, file: Path) -> None:
    first = ledger("budget", "apply", file, "--from", "2026-03-01", "--yes")
    heads = ledger.heads()
    again = ledger("budget", "apply", file, "--from", "2026-03-01", "--yes")

    assert (first.status, first.out) == (0, "7 changes applied\n")
    assert (again.status, again.out) == (0, "nothing to change\n")
    assert ledger.heads() == heads
    assert ledger.done("balance", "org/vision", "--cluster", "alpha", "--period", "2026-03")[
        "granted_gpu_ms"
    ] == (360_000_000)


def test_without_a_terminal_nobody_is_asked(ledger: Ledger, file: Path) -> None:
    assert ledger("budget", "apply", file).out == "7 changes applied\n"


def test_the_default_grant_divides_what_is_installed(ledger: Ledger, file: Path) -> None:
    applied = ledger.done("budget", "apply", file, "--from", "2026-03-01", "--yes")
    assert applied["opened"] == {"alpha": ["2026-03"]}
    speech = ledger.done("balance", "org/speech", "--cluster", "alpha", "--period", "2026-03")
    assert speech["granted_gpu_ms"] == 20 * 744 * 3_600_000 // 4


def test_a_month_that_is_divided_by_other_shares_is_told_before_it_opens(ledger: Ledger, file: Path) -> None:
    told = (
        "alpha: 2026-03 is not open yet, and what opens is divided by the shares of 2026-03-01T00:00:00Z, not by those"
        " set here from 2026-03-15T00:00:00Z on; --from 2026-03-01 divides it by these"
    )
    assert told in ledger("budget", "apply", file, "--from", "2026-03-15", "--dry-run").err
    assert "divided" not in ledger("budget", "apply", file, "--from", "2026-03-01", "--yes").err
    file.write_text(FILE.replace("share: 3", "share: 5"))
    assert "divided" not in ledger("budget", "apply", file, "--from", "2026-03-15", "--dry-run").err


def test_a_share_holds_from_its_effective_date(ledger: Ledger, file: Path) -> None:
    ledger.done("budget", "apply", file, "--from", "2026-03-01", "--yes")
    file.write_text(FILE.replace("share: 3", "share: 5"))
    changed = ledger.done("budget", "apply", file, "--from", "2026-06-01", "--yes")

    assert changed["changes"] == ["~ share    org/vision  3 -> 5"]
    versions = ledger.rows(
        "SELECT from_at::date::text, share FROM ledger.shares WHERE account = 'org/vision' ORDER BY from_at"
    )
    assert versions == [("2026-03-01", 3), ("2026-06-01", 5)]


def test_a_share_set_to_and_fro_for_one_moment_is_what_was_said_last(ledger: Ledger, file: Path) -> None:
    for share in (3, 5, 3):
        file.write_text(FILE.replace("share: 3", f"share: {share}"))
        ledger.done("budget", "apply", file, "--from", "0", "--yes")
    assert shares(ledger)["org/vision"] == 3


def test_a_grant_grows_by_the_same_amount_twice(ledger: Ledger, file: Path) -> None:
    for hours in (100, 150, 200):
        file.write_text(FILE.replace("gpu_hours: 100", f"gpu_hours: {hours}"))
        ledger.done("budget", "apply", file, "--from", "0", "--yes")
    vision = ledger.done("balance", "org/vision", "--cluster", "alpha", "--period", "2026-03")
    assert vision["granted_gpu_hours"] == "200.000"


def test_a_grant_cannot_be_taken_back(ledger: Ledger, file: Path) -> None:
    ledger.done("budget", "apply", file, "--yes")
    file.write_text(FILE.replace("gpu_hours: 100", "gpu_hours: 99.5"))
    ran = ledger("budget", "apply", file, "--json")
    assert ran.status == 2
    assert "the grant on alpha for 2026-03 would shrink to 99.5 GPU-hours" in ran.problem["error"]


def test_fewer_gpus_retire_hosts(ledger: Ledger, file: Path) -> None:
    ledger.done("budget", "apply", file, "--from", "2026-03-01", "--yes")
    file.write_text(FILE.replace("gpus: 20", "gpus: 8"))
    changed = ledger.done("budget", "apply", file, "--from", "2026-04-01", "--yes")
    assert changed["changes"] == ["~ cluster  alpha  20 -> 8 GPUs of h100 on 1 hosts"]
    open_hosts = "SELECT host, gpus FROM ledger.hosts WHERE until_seq IS NULL AND to_at IS NULL"
    assert ledger.rows(open_hosts) == [("alpha-0001", 8)]


def test_the_zone_is_set_before_the_first_fact_only(ledger: Ledger, file: Path, tmp_path: Path) -> None:
    file.write_text("organisation: {timezone: Europe/Berlin}\n" + FILE)
    applied = ledger.done("budget", "apply", file, "--yes")
    assert applied["changes"][0] == "~ organisation.timezone  UTC -> Europe/Berlin"
    trace = tmp_path / "trace.csv"
    trace.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-31 22:30:00,3600.0,1,3600.0,vc\n")
    ledger.done("import", "philly", trace)

    assert ledger.hours("month", "--cluster", "philly") == {"2017-10": "0.500", "2017-11": "0.500"}
    file.write_text("organisation: {timezone: UTC}\n" + FILE)
    ran = ledger("budget", "apply", file, "--json")
    assert ran.status == 2
    assert "differs from Europe/Berlin, and facts are booked already" in ran.problem["error"]
    assert ran.problem["hint"]


REFUSED = {
    "acounts: {}": "acounts is no key; did you mean accounts?",
    "accounts: {a: {shares: 1}}": "accounts.a.shares is no key; did you mean share?",
    "accounts: {a: {share: -1}}": "accounts.a.share: ",
    "accounts: {a: {share: 1.5}}": "accounts.a.share: ",
    "accounts: {A/b: {}}": "'A/b'",
    "accounts: {a: {grants: [{cluster: c, period: 2026-13, gpu_hours: 1}]}}": "accounts.a.grants.0.period: ",
    "accounts: {a: {grants: [{cluster: c, period: 2026-01, gpu_hours: -1}]}}": "accounts.a.grants.0.gpu_hours: ",
    "accounts: {a: {grants: [{cluster: c, period: 2026-01, gpu_hours: '0.000001'}]}}": "grants[0].gpu_hours: ",
    "accounts: {a: {grants: [{cluster: c, period: 2026-01, gpu_hours: 1},"
    " {cluster: c, period: 2026-01, gpu_hours: 2}]}}": "accounts.a.grants[1]: a has another grant on c for 2026-01",
    "accounts: {a: {overdraft: sometimes}}": "overdraft",
    "clusters: {c: {gpus: 8}}": "clusters.c.model: Field required",
    "clusters: {c: {gpus: 8, model: x}, c: {gpus: 9, model: x}}": "'c' stands twice",
    "organisation: {timezone: Mars/Olympus}": "Mars/Olympus",
    "organisation: {period: week}": "organisation.period: ",
    "[]": "file: ",
    "a: [": "is not YAML",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_file_that_does_not_fit_is_refused_with_the_place(
    ledger: Ledger, tmp_path: Path, text: str
) -> None:
    path = tmp_path / "budget.yaml"
    path.write_text(text)
    ran = ledger("budget", "apply", path, "--json")
    assert ran.status == 2
    assert ran.out == ""
    assert ran.problem["error"].startswith(f"{path}: ")
    assert REFUSED[text] in ran.problem["error"]
    assert ledger.heads() == []


def test_a_missing_file_is_bad_usage(ledger: Ledger, tmp_path: Path) -> None:
    ran = ledger("budget", "apply", tmp_path / "nothing.yaml", "--json")
    assert (ran.status, ran.problem["exit"]) == (2, 2)


def test_a_limit_is_counted_apart_from_what_the_account_got_as_a_leaf(ledger: Ledger, tmp_path: Path) -> None:
    def apply(text: str) -> list[str]:
        path = tmp_path / "file.yaml"
        path.write_text(text)
        changes: list[str] = ledger.done("budget", "apply", path, "--from", "2026-03-01")["changes"]
        return changes

    apply(FILE)
    grant = "{cluster: alpha, period: 2026-03, gpu_hours: %s}"
    apply("accounts: {org/vision/child: {share: 1}}")
    shown = apply(f"accounts: {{org/vision: {{share: 3, grants: [{grant % 7}]}}}}")
    assert shown == ["+ limit    org/vision  alpha 2026-03  7 GPU-hours"]
    more = apply(f"accounts: {{org/vision: {{share: 3, grants: [{grant % 9}]}}}}")
    assert more == ["+ limit    org/vision  alpha 2026-03  9 GPU-hours in all, 2.000 more"]
    apply(f"accounts: {{org/vision/child: {{share: 1, grants: [{grant % 100}]}}}}")
    child = ledger.done("balance", "org/vision/child", "--cluster", "alpha", "--period", "2026-03")
    assert (child["available_gpu_hours"], child["binding_account"]) == ("9.000", "org/vision")


def test_overdraft_is_set_once_and_left_alone_where_it_is_not_named(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"

    def apply(text: str, *options: str) -> list[str]:
        path.write_text(text)
        changes: list[str] = ledger.done("budget", "apply", path, "--from", "2026-03-01", *options)["changes"]
        return changes

    hard = "accounts: {org: {overdraft: hard}, org/vision: {overdraft: hard}, org/speech: {overdraft: soft}}"
    shown = apply(hard, "--dry-run")
    assert [line for line in shown if "overdraft" in line] == [
        "~ overdraft org  soft -> hard",
        "~ overdraft org/vision  soft -> hard",
    ]
    assert apply(hard) == shown
    heads = ledger.heads()
    assert apply(hard) == []
    assert apply("accounts: {org: {}, org/vision: {share: 1}}") == []
    assert ledger.heads() == heads
    assert apply("accounts: {org/vision: {overdraft: soft}}") == ["~ overdraft org/vision  hard -> soft"]
    ledger.checked_digest()
