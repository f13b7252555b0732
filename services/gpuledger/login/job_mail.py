"""``gjobmail``: stands in for Slurm's ``MailProg`` and adds a job's story to the mail that Slurm sends at its end.

Slurm calls it as ``gjobmail -s SUBJECT ADDRESS``. Whatever the ledger says, or does not, the mail goes out: the mail
program that was there before is called with the same subject, and the story below what Slurm wrote.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpuledger.kernel.errors import GpuledgerError, NotFound, Refused
from gpuledger.login import asking

if TYPE_CHECKING:
    from gpuledger.client import LedgerClient

_JOB = re.compile(r"\bJob_id=(\d+(?:_\d+)?)")
_OVER = re.compile(r"\b(Ended|Failed|Requeued)\b")
_PAUSE_S = 2.0
_MAILER_LIMIT_S = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status: that of the mail program, once it was called."""
    made = argparse.ArgumentParser(
        prog="gjobmail",
        description="Add a job's story to the mail that Slurm sends: name it, or a script that calls it, as MailProg.",
        allow_abbrev=False,
    )
    made.add_argument(
        "-s", dest="subject", default="", metavar="SUBJECT", help="the subject, as Slurm writes it"
    )
    made.add_argument("address", metavar="ADDRESS", help="who gets it")
    made.add_argument("--send", action="store_true", help="send it; without, print what would be sent")
    made.add_argument(
        "--mailer",
        default="/usr/bin/mail",
        metavar="PROGRAM",
        help="the mail program that was MailProg before",
    )
    made.add_argument(
        "--wait",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="how long to wait for the ledger to hear of the end",
    )
    options = made.parse_args(arguments)
    return asking.end_of("gjobmail", lambda: _run(options, sys.stdin, os.environ))


def _run(options: argparse.Namespace, body: object, environment: Mapping[str, str]) -> int:
    if options.address.startswith("-"):
        raise Refused(f"{options.address!r} is no address: a mail program would take it for an option")
    text = _read(body)
    job = job_of(options.subject, environment)
    if job is not None:
        text += (
            "".join(f"\n{line}" for line in _story(job, environment.get("SLURM_CLUSTER_NAME"), options))
            + "\n"
        )
    if not options.send:
        print(f"would be sent by {options.mailer} to {options.address}; --send sends it")
        print(f"Subject: {options.subject}\n\n{text}")
        return 0
    try:
        sent = subprocess.run(
            [options.mailer, "-s", options.subject, options.address],
            input=text.encode("utf-8", "replace"),
            timeout=_MAILER_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(
            f"{options.mailer}: {error}", hint="--mailer names the program that sends mail"
        ) from error
    return sent.returncode


def job_of(subject: str, environment: Mapping[str, str]) -> str | None:
    """Return the job that a mail is about, as the ledger names it; None where nothing says so.

    Tasks of an array are told apart by the subject alone, as ``Job_id=8841_7``; the variables name the job.
    """
    found = _JOB.search(subject)
    if found:
        return found[1]
    task = environment.get("SLURM_ARRAY_TASK_ID")
    job = environment.get("SLURM_ARRAY_JOB_ID") if task else environment.get("SLURM_JOB_ID")
    return f"{job}_{task}" if job and task else job


def _story(job: str, cluster: str | None, options: argparse.Namespace) -> list[str]:
    """Return the lines to add: the story, or a line that says why there is none."""
    try:
        with asking.open_client() as client:
            return _told(
                client, job, cluster, until_over=bool(_OVER.search(options.subject)), wait_s=options.wait
            )
    except NotFound:
        return [f"The GPU ledger has not heard of job {job}: gjob {job} tells its story once it has."]
    except GpuledgerError:
        return [f"The GPU ledger could not be asked: gjob {job} tells what the job cost."]


def _told(
    client: "LedgerClient", job: str, cluster: str | None, *, until_over: bool, wait_s: float
) -> list[str]:
    """Return a job's story, after a while at most where the mail is about its end: Slurm mails before it accounts."""
    limit = time.monotonic() + wait_s
    while True:
        story = None
        try:
            story = client.workload(job, cluster=cluster)
        except NotFound:
            if time.monotonic() >= limit:
                raise
        if story is not None and (story.state == "over" or not until_over or time.monotonic() >= limit):
            return list(story.lines)
        time.sleep(min(_PAUSE_S, max(0.0, limit - time.monotonic())))


def _read(body: object) -> str:
    """Return what Slurm wrote, if anything: it often gives no input at all."""
    is_terminal = getattr(body, "isatty", lambda: True)()
    return "" if is_terminal else str(getattr(body, "read", str)())


if __name__ == "__main__":
    sys.exit(main())
