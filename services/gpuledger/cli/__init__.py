"""The gpuledger command: results on stdout, progress and hints on stderr, an exit status that tells.

0 done, 1 failed, 2 bad usage or input, 3 a check found problems, 4 not found, 75 try again later,
130 interrupted, 143 terminated.
"""

import os
import sys

from gpuledger.cli.ending import INTERRUPTED, asked_to_end, heed_signals


def main() -> None:
    """Run the command line and exit."""
    try:
        heed_signals()
        status = _run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        # A driver that is interrupted between two words complains about its connection; what was asked stands behind.
        ended = asked_to_end(error)
        if ended is None:
            raise
        status = ended
    if status == INTERRUPTED:
        print("gpuledger: interrupted; what is booked stays booked", file=sys.stderr)
    sys.exit(status)


def _run() -> int:
    # Boxes are for terminals; NO_COLOR users and pipes get plain help.
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        os.environ.setdefault("TYPER_USE_RICH", "0")
    from typer import Abort
    from typer._click.exceptions import ClickException

    from gpuledger.cli.app import app
    from gpuledger.cli.failure import report, report_usage
    from gpuledger.kernel.errors import GpuledgerError, Refused
    from gpuledger.kernel.exits import FAILED

    as_json = "--json" in sys.argv
    try:
        status = app(standalone_mode=False)
        sys.stdout.flush()
    except GpuledgerError as error:
        status = asked_to_end(error) or report(error, as_json=as_json)
    except ClickException as error:
        status = report_usage(error, as_json=as_json)
    except Abort:
        status = FAILED
    except (BrokenPipeError, SystemExit) as end:
        if isinstance(end, SystemExit) and not isinstance(end.__context__, BrokenPipeError):
            raise
        # The reader went away (`| head`): not an error, and nothing more can be written.
        _write_nothing_more()
        status = 0
    except UnicodeEncodeError as error:
        status = report(
            Refused(f"an argument is not UTF-8: {error}", hint="check the terminal's encoding"),
            as_json=as_json,
        )
    except OSError as error:
        # A full disk, say; what could not be written must not be tried once more at the end.
        _write_nothing_more()
        status = report(
            GpuledgerError(str(error), hint="free some space, or check permissions"), as_json=as_json
        )
    return int(status or 0)


def _write_nothing_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
