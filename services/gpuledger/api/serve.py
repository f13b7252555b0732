"""Run the API on this machine."""

import ssl
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from gpuledger.api.hosts import OwnNames, is_loopback
from gpuledger.api.rates import Limiter, Rate
from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock
from gpuledger.kernel.errors import Refused
from gpuledger.settings import Settings

if TYPE_CHECKING:
    from gpuledger.identity.oidc import Provider

HOST = "127.0.0.1"
"""Whom nobody else reaches: an API that anyone may read is served nowhere else."""

_GRACE_S = 8
"""How long answers that were begun may take once it is to end; whoever started it insists after ten seconds."""


def check_address(host: str, settings: Settings) -> None:
    """Refuse to let the network read an API that asks for no token.

    Raises:
        Refused: When the API is open and the address is not this machine's own.
    """
    if settings.api_access == "open" and not is_loopback(host):
        raise Refused(
            f"whoever reaches {host} could read everything: the API is open",
            hint="set GPULEDGER_API_ACCESS=token and hand out tokens (gpuledger token create), or bind to 127.0.0.1",
        )


def run(url: str, host: str = HOST, port: int = 8080) -> None:
    """Serve until interrupted, as the settings say.

    Args:
        url: SQLAlchemy URL of a migrated database.
        host: Address to bind.
        port: Port to bind.

    Raises:
        Refused: As ``check_address``.
    """
    import uvicorn

    from gpuledger.api.app import create_app
    from gpuledger.api.request_heads import HEAD_BYTES_MAX, protocol
    from gpuledger.settings import load
    from gpuledger.streams.opening import open_broker

    settings = load()
    check_address(host, settings)
    tls = tls_of(settings)
    engine = make_engine(url)
    broker = open_broker(settings) if settings.kafka_bootstrap else None
    app = create_app(
        engine,
        SystemClock(),
        settings.calendar,
        mode=settings.api_access,
        broker=broker,
        provider=provider_of(settings),
        by_another=settings.approval == "another",
        limiter=Limiter(Rate(settings.api_rate, settings.api_burst)) if settings.api_rate else None,
    )
    if settings.api_access == "open":
        app.add_middleware(OwnNames)
    try:
        uvicorn.run(
            app,
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            http=protocol(),
            h11_max_incomplete_event_size=HEAD_BYTES_MAX,
            timeout_graceful_shutdown=_GRACE_S,
            **tls,
        )
    finally:
        engine.dispose()


class Tls(TypedDict, total=False):
    """What the server is told of TLS; empty for none."""

    ssl_certfile: Path
    ssl_keyfile: Path
    ssl_keyfile_password: str | None


def tls_of(settings: Settings) -> Tls:
    """Return what the settings say of TLS, once the certificate was tried.

    Raises:
        Refused: When certificate and key cannot be read, or do not belong together.
    """
    cert, key = settings.api_tls_cert_file, settings.api_tls_key_file
    if cert is None or key is None:
        return {}
    secret = settings.api_tls_key_password_file
    try:
        password = None if secret is None else secret.read_text().partition("\n")[0].strip()
        # Without one a key that has one would ask whoever sits at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, lambda: password or "")
    except (OSError, ValueError) as error:  # of which the library's own are kinds
        raise Refused(
            f"the certificate {cert} cannot be used with the key {key}: {error}",
            hint="both are PEM files that belong together; see docs/api.md, TLS",
        ) from error
    return {"ssl_certfile": cert, "ssl_keyfile": key, "ssl_keyfile_password": password}


def provider_of(settings: Settings) -> "Provider | None":
    """Return the identity provider of the settings, or None.

    Raises:
        Refused: When its groups cannot be read, or what reads its tokens is not installed.
    """
    if settings.oidc_issuer is None or settings.oidc_audience is None or settings.oidc_groups is None:
        return None
    try:
        from gpuledger.identity.oidc import Provider
    except ImportError as error:
        raise Refused(
            "identity tokens need PyJWT, which is not installed", hint="pip install 'gpuledger[oidc]'"
        ) from error
    from gpuledger.identity.groups import Groups
    from gpuledger.ingest.yaml_file import read_yaml

    groups = read_yaml(settings.oidc_groups, Groups, "docs/api.md")
    return Provider(settings.oidc_issuer, settings.oidc_audience, groups, SystemClock())
