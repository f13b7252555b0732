"""What the commands on a login node have in common."""

from pathlib import Path

import pytest
from tests.unit.login import scripted

from gpuledger.kernel.errors import NotFound, Unavailable
from gpuledger.login import asking
from gpuledger.login.columns import Style


@pytest.mark.parametrize(
    ("flags", "style"),
    [([], Style.ALIGNED), (["-p"], Style.BARS_CLOSED), (["-P"], Style.BARS), (["-p", "-P"], Style.BARS)],
)
def test_how_rows_are_printed(flags: list[str], style: Style) -> None:
    made = asking.parser("gshare", "x")
    asking.add_table_flags(made)
    assert asking.style_of(made.parse_args(flags)) is style


def test_accounts_are_kept_with_what_is_below_them() -> None:
    kept = asking.names_in(" org/a, org/bee ,")
    assert kept == ("org/a", "org/bee")
    assert asking.is_within("org/a", kept)
    assert asking.is_within("org/a/x", kept)
    assert not asking.is_within("org/b", kept)
    assert not asking.is_within("org/ab", kept)
    assert asking.is_within("org/b", ())


def test_the_only_cluster_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted.answer_with(monkeypatch, {"/v1/clusters": scripted.clusters("alpha")})
    with asking.open_client() as client:
        assert asking.cluster_of(client, None) == "alpha"
        assert asking.cluster_of(client, "beta") == "beta"


def test_a_ledger_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    scripted.answer_with(monkeypatch, {"/v1/clusters": scripted.clusters()})
    with asking.open_client() as client, pytest.raises(NotFound, match="knows no cluster"):
        asking.cluster_of(client, None)


def test_a_client_asks_with_the_token_of_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from gpuledger import settings

    (tmp_path / "token").write_text("gl_secret\n")
    monkeypatch.setenv("GPULEDGER_API_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("GPULEDGER_API_TOKEN_FILE", str(tmp_path / "token"))
    settings.load.cache_clear()
    with asking.open_client() as client:
        assert client.base_url == "http://127.0.0.1:9"
    settings.load.cache_clear()


def test_what_goes_wrong_is_a_line_and_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    def unreached() -> int:
        raise Unavailable("nobody answers")

    def interrupted() -> int:
        raise KeyboardInterrupt

    assert asking.end_of("gjob", unreached) == 75
    assert capsys.readouterr() == ("", "gjob: nobody answers\n")
    assert asking.end_of("gjob", interrupted) == 130
    assert asking.end_of("gjob", lambda: 3) == 3
