"""What Slurm says of what may be otherwise at the next look: nobody answers, or the job is another by now. Pure.

Its commands exit with 1 whatever happened, and print sentences, never numbers. So they are told apart by whole
sentences of its own table (slurm/slurm_errno.h), for which no name of an account or a node can be mistaken. All else
that they say is their last word: no right, an unknown name, a job that cannot be requeued.
"""

from collections.abc import Mapping

PASSING: Mapping[int, str] = {
    1001: "Communication connection failure",
    1002: "Message send failure",
    1003: "Message receive failure",
    1004: "Communication shutdown failure",
    1800: "Unable to contact slurm controller (connect failure)",
    1801: "Unable to contact slurm controller (send failure)",
    1802: "Unable to contact slurm controller (receive failure)",
    1803: "Unable to contact slurm controller (shutdown failure)",
    2017: "Invalid job id specified",
    2020: "Job can not be altered now, try again later",
    2021: "Job/step already completing or completed",
    2024: "Job is pending execution",
    2027: "Slurm backup controller in standby mode",
    2061: "PrologSlurmctld is still running",
    2073: "Job is no longer pending execution",
    2083: "Job has already started",
    2084: "Job has already finished",
    2085: "Job is not running",
    2086: "Job is not pending nor running",
    2103: "Job update not available right now, the DB index is being set, try again in a bit",
    2131: "Controller is in standby mode, try a different controller",
    5000: "Received zero length message",
    5002: "Failed to send entire message",
    5004: "Socket timed out on send/recv operation",
    5005: "Zero Bytes were transmitted or received",
    6002: "Failed to connect to authentication agent",
    7000: "Unable to connect to database",
}
"""Error number -> its sentence, as of 22.05; newer releases have the same."""

NOBODY_ANSWERS = (
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Network is unreachable",
    "No route to host",
    "Resource temporarily unavailable",
    "Problem talking to the database",
    "persistent connection",
    "Munge encode failed",
)
"""What stands in messages besides: sentences of the system, and of the libraries towards slurmdbd and munge."""

_SENTENCES = tuple(sentence.casefold() for sentence in (*PASSING.values(), *NOBODY_ANSWERS))


def may_pass(said: str) -> bool:
    """Tell whether what a command said of its failure may be otherwise at the next look; it said nothing: it may."""
    told = said.casefold()
    return not told.strip() or any(sentence in told for sentence in _SENTENCES)
