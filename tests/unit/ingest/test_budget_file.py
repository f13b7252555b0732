"""The budget file is read strictly: what is not understood is refused, with its place."""

from pathlib import Path

import pytest

from gpuledger.ingest.budget_file import BudgetFile, read
from gpuledger.kernel.errors import NotFound, Refused


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.yaml"


def test_every_key(path: Path, repository: Path) -> None:
    """The example of the documentation holds every key and is a file that can be read."""
    page = (repository / "docs/budget-file.md").read_text()
    path.write_text(page.partition("```yaml\n")[2].partition("```")[0])
    file = read(path)
    assert file.organisation is not None
    keys = {
        *BudgetFile.model_fields,
        *type(file.organisation).model_fields,
        *(key for cluster in file.clusters.values() for key in cluster.model_fields_set),
        *(key for account in file.accounts.values() for key in account.model_fields_set),
        *(
            key
            for account in file.accounts.values()
            for grant in account.grants
            for key in grant.model_fields_set
        ),
    }
    assert {key for key in keys if f"`{key}`" not in page} == set()
    expected = {"gpus", "model", "gpus_per_host", "share", "overdraft", "grants", "cluster", "period"}
    assert keys >= expected | {"gpu_hours", "priority", "expires", "rollover", "timezone"}


def test_the_defaults(path: Path) -> None:
    path.write_text("clusters: {c: {gpus: 1, model: m}}\naccounts: {a: {}}\norganisation: {}")
    file = read(path)
    assert (file.organisation.timezone, file.organisation.period) == ("UTC", "month")
    assert file.clusters["c"].gpus_per_host == 8
    assert (file.accounts["a"].share, file.accounts["a"].overdraft, file.accounts["a"].grants) == (
        1,
        None,
        (),
    )


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "accounts: {}"])
def test_a_file_that_says_nothing(path: Path, text: str) -> None:
    path.write_text(text)
    assert read(path) == BudgetFile()


@pytest.mark.parametrize(
    ("hours", "gpu_ms"),
    [("1", 3_600_000), ("0.5", 1_800_000), ("'0.000001'", None), ("100000", 360_000_000_000)],
)
def test_hours_are_exact_or_refused(path: Path, hours: str, gpu_ms: int | None) -> None:
    path.write_text(f"accounts: {{a: {{grants: [{{cluster: c, period: 2026-01, gpu_hours: {hours}}}]}}}}")
    if gpu_ms is None:
        with pytest.raises(Refused, match="is not a whole number of gpu_ms"):
            read(path)
    else:
        assert read(path).accounts["a"].grants[0].gpu_ms == gpu_ms


@pytest.mark.parametrize("text", ["accounts: {a: {share: 1}, a: {share: 2}}", "accounts: {}\naccounts: {}\n"])
def test_a_key_that_stands_twice_is_refused_with_its_line(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(Refused, match=r"stands twice .* line \d"):
        read(path)


@pytest.mark.parametrize("text", ["[]", "0", "false", "text", "accounts: []", "accounts: {a: 3}"])
def test_another_shape_is_refused(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(Refused, match=r"budget\.yaml: "):
        read(path)


def test_a_date_without_a_zone_is_refused(path: Path) -> None:
    grant = "{cluster: c, period: 2026-01, gpu_hours: 1, expires: 2026-02-01T00:00:00}"
    path.write_text(f"accounts: {{a: {{grants: [{grant}]}}}}")
    with pytest.raises(Refused, match=r"accounts\.a\.grants\.0\.expires"):
        read(path)


def test_what_an_account_owns_itself_is_as_hard_as_it_is(path: Path) -> None:
    path.write_text("accounts: {a: {overdraft: hard}, a/~own: {share: 2}}")
    assert read(path).accounts["a/~own"].share == 2
    path.write_text("accounts: {a/~own: {overdraft: hard}}")
    with pytest.raises(Refused, match=r"accounts\.a/~own\.overdraft: what a owns itself is as hard as a is"):
        read(path)


def granted(path: Path, key: str) -> BudgetFile:
    grant = f"{{cluster: c, period: 2026-01, gpu_hours: 1, {key}}}"
    path.write_text(f"accounts: {{a: {{grants: [{grant}]}}}}")
    return read(path)


@pytest.mark.parametrize(
    ("text", "spelt"),
    [("none", "none"), ("min  5 max 10.50", "min 5 max 10.5"), ("all", "all"), ("null", None)],
)
def test_a_rollover_is_kept_in_its_one_spelling(path: Path, text: str, spelt: str | None) -> None:
    assert granted(path, f"rollover: {text}").accounts["a"].grants[0].rollover == spelt


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("rollover: half", "accounts.a.grants.0.rollover: 'half' is no rule; write none, all, max 100"),
        ("rollover: 100", "accounts.a.grants.0.rollover: "),
        ("rollover: min 2 max {1}", "is not YAML"),
        ("rollover: min 2 max 1", "accounts.a.grants.0.rollover: min 2 exceeds max 1; "),
        ("rollover: '{said}'", "accounts.a.grants.0.rollover: '{said}' is no rule"),
        ("rollover: {min: 1, max: 2}", "accounts.a.grants.0.rollover: "),
        ("priority: high", "accounts.a.grants.0.priority: "),
        ("priority: 1.5", "accounts.a.grants.0.priority: "),
        ("priority: 1000000001", "accounts.a.grants.0.priority: "),
    ],
)
def test_terms_of_a_grant_that_cannot_be_are_refused_by_place(path: Path, key: str, said: str) -> None:
    with pytest.raises(Refused) as refused:
        granted(path, key)
    assert said in refused.value.message


def test_several_faults_are_told_at_once(path: Path) -> None:
    path.write_text("accounts: {a: {share: -1}}\nclusters: {c: {gpus: 1}}\nextra: 1\n")
    with pytest.raises(Refused) as refused:
        read(path)
    for place in ("accounts.a.share", "clusters.c.model", "extra"):
        assert place in refused.value.message


def test_a_missing_file_and_a_folder(path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read(path)
    path.mkdir()
    with pytest.raises(NotFound):
        read(path)


def test_bytes_that_are_no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(Refused, match="is not YAML"):
        read(path)
