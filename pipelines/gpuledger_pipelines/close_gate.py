"""Validate the statement of a close before it is sealed.

``python -m gpuledger_pipelines.close_gate CLUSTER PERIOD VERSION``, with ``GPULEDGER_DATABASE_URL`` set.

The command ``gpuledger close run`` starts this as a process; the close job calls ``gate``. The verdict goes to stdout
as one JSON document: ``checks``, ``findings``.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence

from gpuledger.close.steps import Verdict
from gpuledger.close.store import Place
from gpuledger.settings import load
from gpuledger_pipelines.data_docs.folder import DataDocs, Tried
from gpuledger_pipelines.expectations import close as expect
from gpuledger_pipelines.gate import findings_of, kept, literal, validate

TABLE = "statement"


def gate(url: str, place: Place, docs: DataDocs | None = None) -> Verdict:
    """Return what the suite says of the rows of a statement.

    Args:
        url: SQLAlchemy URL of the database.
        place: The close.
        docs: Where to keep what was found; nowhere unless given.
    """
    cluster, period = literal(place.cluster), literal(place.period)
    query = (
        f"SELECT * FROM warehouse.statement WHERE cluster = {cluster} AND period = {period}"
        f" AND version = {place.version}"
    )
    expectations = expect.statement(cluster, period)
    result = validate(url, query, expectations, expect.KEY)
    tried = Tried(TABLE, place.cluster, f"{place.period}, version {place.version}")
    page, _ = kept(docs, tried, result, expectations)
    if docs is not None and page:
        docs.build()
    return Verdict(len(expectations), tuple(finding.as_text() for finding in findings_of(result)))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the verdict; return 0 whatever it is."""
    parser = argparse.ArgumentParser(prog="python -m gpuledger_pipelines.close_gate", description=__doc__)
    parser.add_argument("cluster")
    parser.add_argument("period")
    parser.add_argument("version", type=int)
    options = parser.parse_args(arguments)
    place = Place(options.cluster, options.period, options.version)
    verdict = gate(os.environ["GPULEDGER_DATABASE_URL"], place, DataDocs.of(load()))
    sys.stdout.write(json.dumps({"checks": verdict.checks, "findings": list(verdict.findings)}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
