"""The API as ``gpuledger serve`` runs it, with one more path: what asks for one row by its key, and answers with it.

``python -m tests.bench.bare_server URL PORT``, in an environment as the server's.
"""

import sys
from typing import Any

import sqlalchemy as sa
from fastapi import Depends, FastAPI

from gpuledger.api import app, serve
from gpuledger.api.access import Access, needs
from gpuledger.api.context import Context
from gpuledger.identity.roles import Right
from gpuledger.kernel.calendar import Calendar
from gpuledger.settings import load

BARE = "/bare"
BARE_WITH_TOKEN = "/bare-with-token"
SELECT = "SELECT book, last_seq, last_recorded_at FROM ledger.books WHERE book = %s"


def main(url: str, port: int) -> None:
    """Serve until interrupted."""
    made = app.create_app

    def create_app(engine: sa.Engine, *args: Any, **kwargs: Any) -> FastAPI:  # noqa: ANN401
        application = made(engine, *args, **kwargs)

        def bare(book: str) -> dict[str, Any]:
            with engine.connect() as connection:
                row = connection.exec_driver_sql(SELECT, (book,)).one()
            return {"book": row[0], "rows": row[1], "last_recorded_at": row[2].isoformat()}

        application.get(f"{BARE}/{{book}}")(bare)
        access = Access(Context(engine, args[0], Calendar()), load().api_access)
        guarded = application.get(
            f"{BARE_WITH_TOKEN}/{{book}}", dependencies=[Depends(access)], **needs(Right.READ_CLUSTERS)
        )
        guarded(bare)
        return application

    app.create_app = create_app
    serve.run(url, port=port)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
