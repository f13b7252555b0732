"""Owed: entitlement, demand, owed and delivered by account and hour."""

import sqlalchemy as sa

from gpuledger.kernel.portions import members
from gpuledger_pipelines.declaring import warehouse_asset
from gpuledger_pipelines.defs.owed.checks import OWED_HOUR
from gpuledger_pipelines.defs.owed.entitlement import ShareInForce, Version, as_columns, versions
from gpuledger_pipelines.defs.usage.assets import usage_hour
from gpuledger_pipelines.gate import HOURS
from gpuledger_pipelines.partitions import HOUR_S, Span
from gpuledger_pipelines.resources import Rewriting
from gpuledger_pipelines.seats import seats_told


@warehouse_asset(
    group="owed",
    gate=OWED_HOUR,
    deps=[usage_hour],
    ledger=("segments", "placements", "waits", "hosts", "shares", "accounts"),
)
def owed_hour(rewriting: Rewriting, span: Span) -> int:
    """Entitlement E, demand D, owed W = min(E, D) and delivered L."""
    found = entitled(rewriting.connection, span)
    rewriting.delete(HOURS, span.binds)
    seats = seats_told(rewriting, span)
    return rewriting.insert(
        "owed/owed_hour", {**span.binds, **as_columns(found), **seats, "bucket_s": HOUR_S}
    )


def entitled(connection: sa.Connection, span: Span) -> list[Version]:
    """Read the tree and its shares; return each leaf's part of the cluster over the span."""
    accounts = connection.execute(sa.text("SELECT path FROM ledger_read.accounts ORDER BY path")).scalars()
    books = connection.execute(sa.text("SELECT book FROM ledger_read.books")).scalars()
    paths = members(span.cluster, accounts.all(), books.all())
    shares = connection.execute(
        sa.text(
            "SELECT account, share, floor(extract(epoch FROM from_at))::bigint,"
            " floor(extract(epoch FROM to_at))::bigint FROM ledger_read.shares"
        )
    )
    return versions(paths, [ShareInForce(*row) for row in shares], span.from_s, span.to_s)


ASSETS = (owed_hour,)
