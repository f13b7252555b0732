"""The server binds to this machine, and lets the database go when it ends."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from gpuledger.api.serve import check_address, provider_of
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings

PROGRAM = "import sys; from gpuledger.api.serve import run; run(sys.argv[1], port=int(sys.argv[2]))"


def test_it_serves_on_the_loopback_until_interrupted() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    with subprocess.Popen([sys.executable, "-c", PROGRAM, url, str(port)]) as server:
        try:
            place = f"http://127.0.0.1:{port}/healthz"
            assert _answer(place) == 200
            elsewhere = httpx2.get(place, headers={"Host": "evil.example"}, trust_env=False)
            assert elsewhere.status_code == 421
        finally:
            server.terminate()
        assert server.wait(timeout=20) in {0, -15}


def _answer(url: str) -> int:
    for _ in range(200):
        try:
            return httpx2.get(url, trust_env=False).status_code
        except httpx2.TransportError:
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_an_open_api_is_served_on_this_machine(host: str) -> None:
    check_address(host, Settings())


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "ledger.example"])
def test_and_nowhere_else(host: str) -> None:
    with pytest.raises(Refused, match="could read everything") as refused:
        check_address(host, Settings())
    assert "GPULEDGER_API_ACCESS=token" in refused.value.hint
    check_address(host, Settings(api_access="token"))


def test_the_identity_provider_of_the_settings(tmp_path: Path) -> None:
    assert provider_of(Settings()) is None
    groups = tmp_path / "groups.yaml"
    given = {"oidc_issuer": "https://id.example", "oidc_audience": "gpuledger", "oidc_groups": groups}
    with pytest.raises(Refused, match=r"groups\.yaml"):
        provider_of(Settings(**given))  # type: ignore[arg-type]
    groups.write_text("groups: {vision: {role: lead, subtree: org/vision}}")
    found = provider_of(Settings(**given))  # type: ignore[arg-type]
    assert found is not None
    assert (found.issuer, found.audience, list(found.groups.groups)) == (
        "https://id.example",
        "gpuledger",
        ["vision"],
    )
