"""Run the API on this machine."""

from gpuledger.database.engine import make_engine
from gpuledger.kernel.clock import SystemClock

HOST = "127.0.0.1"
"""There is no log-in yet, so nobody outside this machine is served unless asked for by name."""

_GRACE_S = 10


def run(url: str, host: str = HOST, port: int = 8080) -> None:
    """Serve until interrupted.

    Args:
        url: SQLAlchemy URL of a migrated database.
        host: Address to bind.
        port: Port to bind.
    """
    import uvicorn

    from gpuledger.api.app import create_app
    from gpuledger.settings import load

    engine = make_engine(url)
    try:
        uvicorn.run(
            create_app(engine, SystemClock(), load().calendar),
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    finally:
        engine.dispose()
