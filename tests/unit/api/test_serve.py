"""The server binds to this machine, and lets the database go when it ends."""

import os
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest
from pydantic import ValidationError
from tests.brokers.secured import Authority

from gpuledger.api.serve import check_address, provider_of, tls_of
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


def test_with_a_certificate_it_speaks_tls_alone(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "authority.crt")
    cert, key = authority.issue("api", tmp_path, "secret")
    (tmp_path / "password").write_text("secret\n")
    settings = {
        "GPULEDGER_API_TLS_CERT_FILE": str(cert),
        "GPULEDGER_API_TLS_KEY_FILE": str(key),
        "GPULEDGER_API_TLS_KEY_PASSWORD_FILE": str(tmp_path / "password"),
    }
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = "postgresql+psycopg://nobody@127.0.0.1:1/nothing"
    command = [sys.executable, "-c", PROGRAM, url, str(port)]
    with subprocess.Popen(command, env=os.environ | settings) as server:
        try:
            trusts = ssl.create_default_context(cafile=str(authority.path))
            for _ in range(300):
                try:
                    answer = httpx2.get(f"https://127.0.0.1:{port}/healthz", verify=trusts, trust_env=False)
                    break
                except httpx2.ConnectError:
                    time.sleep(0.1)
            assert answer.status_code == 200
            with pytest.raises(httpx2.TransportError):
                httpx2.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
            with pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                httpx2.get(f"https://127.0.0.1:{port}/healthz", trust_env=False)
        finally:
            server.terminate()
        assert server.wait(timeout=20) in {0, -15}


def test_a_certificate_that_cannot_be_used_is_refused_before_anything_starts(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "authority.crt")
    cert, key = authority.issue("api", tmp_path)
    _, locked = authority.issue("locked", tmp_path, "secret")
    assert tls_of(Settings()) == {}
    assert tls_of(Settings(api_tls_cert_file=cert, api_tls_key_file=key))["ssl_certfile"] == cert
    for other in (locked, tmp_path / "nothing", authority.path):
        with pytest.raises(Refused, match="cannot be used with the key"):
            tls_of(Settings(api_tls_cert_file=cert, api_tls_key_file=other))
    for half in ({"api_tls_cert_file": cert}, {"api_tls_key_password_file": key}):
        with pytest.raises(ValidationError, match=r"come together|has no effect"):
            Settings(**half)
