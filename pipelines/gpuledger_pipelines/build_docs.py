"""Make all pages of what gates found anew: ``python -m gpuledger_pipelines.build_docs``.

Each run makes its own pages and the index. This is for a folder that was copied, and after an upgrade. Where the index
is goes to stdout.

Exit status: 0 done, 1 the folder cannot be written, 2 bad usage, 3 nothing was kept yet.
"""

import argparse
import sys
from collections.abc import Sequence

from gpuledger.kernel.errors import Refused
from gpuledger.settings import load
from gpuledger_pipelines.data_docs.folder import DataDocs

DONE, FAILED, BAD_USAGE, NOTHING = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    argparse.ArgumentParser(
        prog="python -m gpuledger_pipelines.build_docs", description="Make all pages of Data Docs anew."
    ).parse_args(arguments)
    try:
        docs = DataDocs.of(load())
        index = docs.build(anew=True)
    except Refused as error:
        sys.stderr.write(f"error: {error.message}\n")
        return BAD_USAGE
    except OSError as error:
        sys.stderr.write(
            f"error: {error}\nhint: GPULEDGER_DATA_DOCS names a folder that this user may write\n"
        )
        return FAILED
    if index is None:
        sys.stderr.write(f"nothing was kept in {docs.folder} yet; gpuledger rollup tries the gates\n")
        return NOTHING
    sys.stdout.write(f"{docs.link(index)}\n")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
