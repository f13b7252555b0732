"""Why a page has nothing to show: the first link of the chain that is broken, and what mends it. Pure."""

import datetime as dt
from dataclasses import dataclass

from gpuledger.client.answers import ClusterStatus
from gpuledger.kernel.errors import GpuledgerError, NotFound, Unavailable


@dataclass(frozen=True, slots=True)
class Why:
    """A reason, and what to do about it.

    Args:
        sentence: What is missing.
        remedy: What to do, in words; empty when there is nothing to be done.
        command: The command that mends it; empty when there is none.
    """

    sentence: str
    remedy: str = ""
    command: str = ""


ROLL_UP = "gpuledger rollup"
BUDGET_FILE = "gpuledger budget apply budget.yaml"


def of_error(error: GpuledgerError, api_url: str) -> Why:
    """Return why the API gave no answer."""
    match error:
        case Unavailable() if "cannot be reached" in error.message:
            return Why(
                f"The ledger API at {api_url} cannot be reached.",
                "Start it, or set GPULEDGER_API_URL to where it is, then reload this page.",
                "gpuledger serve",
            )
        case NotFound():
            return Why(f"There is no such thing: {error.message}.", error.hint)
        case _:
            return Why(f"The ledger API gave no answer: {error.message}.", error.hint)


def no_clusters() -> Why:
    """Return why there is nothing to pick from."""
    return Why(
        "The ledger holds no cluster yet.",
        "Import records of a scheduler or a trace; the file's jobs become the first cluster.",
        "gpuledger import philly philly.csv.gz",
    )


def not_rolled_up(status: ClusterStatus) -> Why:
    """Return why a cluster with a book has no layers."""
    return Why(
        f"The book of {status.cluster} has {status.rows:,} rows, and nothing of it has been rolled up.",
        "Run the pipelines once, afterwards their schedule does it. A book whose records hold no GPU stays empty.",
        ROLL_UP,
    )


def outside(cluster: str, first: dt.date, last: dt.date, known: tuple[dt.date, dt.date]) -> Why:
    """Return why a window of a cluster is empty."""
    return Why(
        f"Nothing of {cluster} is rolled up from {first} to {last}; there is data from {known[0]} to {known[1]}.",
        "Choose days inside that range, or roll up the newer ones.",
        ROLL_UP,
    )


def no_budget(status: ClusterStatus) -> Why:
    """Return why a cluster has no budget-versus-actual rows."""
    if status.rolled_up_from is None:
        return not_rolled_up(status)
    return Why(
        f"No budget period of {status.cluster} has been rolled up.",
        "A period opens when the cluster's GPUs are known: name them in a budget file, then roll up.",
        f"{BUDGET_FILE} && {ROLL_UP}",
    )


def no_cycle(cluster: str) -> Why:
    """Return why a cluster has no fair shares yet."""
    return Why(
        f"The policy has not run for {cluster} yet.",
        "Its service runs a cycle a minute; this runs one now.",
        f"gpuledger cycle --cluster {cluster}",
    )


def undecided(cluster: str) -> Why:
    """Return why nothing is said of a workload that waits."""
    return Why(
        "No cycle of the policy has decided about it yet.",
        "The policy's service runs one a minute; this runs one now.",
        f"gpuledger cycle --cluster {cluster}",
    )


def of_layer(layer: str, reason: str) -> Why:
    """Return why one layer has no value; the reason is the API's."""
    sentence = reason[:1].upper() + reason[1:].rstrip(".") + "."
    if layer == "utilisation":
        return Why(
            sentence,
            "Utilisation needs a source that measures: telemetry of the GPUs, or job records with a measured load.",
        )
    if "inventory" in reason:
        # A reason that already names the command needs no second one.
        remedy = (
            "" if "gpuledger" in reason else "Name the cluster's GPUs in a budget file, then roll up again."
        )
        return Why(sentence, remedy, f"{BUDGET_FILE} && {ROLL_UP}")
    return Why(sentence)
