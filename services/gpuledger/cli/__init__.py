"""The gpuledger command: results on stdout, progress and hints on stderr, an exit status that tells.

0 done, 1 failed, 2 bad usage or input, 3 a check found problems, 4 not found, 75 try again later,
130 interrupted.
"""

import os
import sys


def main() -> None:
    """Run the command line and exit."""
    # Boxes are for terminals; NO_COLOR users and pipes get plain help.
    if os.environ.get("NO_COLOR") or not sys.stderr.isatty():
        os.environ.setdefault("TYPER_USE_RICH", "0")
    from gpuledger.cli.app import app
    from gpuledger.cli.failure import report
    from gpuledger.kernel.errors import GpuledgerError

    try:
        app()
    except GpuledgerError as error:
        sys.exit(report(error, as_json="--json" in sys.argv))
    except BrokenPipeError:
        # The reader went away (`| head`): not an error, and nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
