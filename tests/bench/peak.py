"""Run a module as a program and say at its end the most memory that it held: ``peak FILE MODULE ARGUMENTS...``.

What ``wait4`` and ``getrusage`` tell of a process is what the one that started it held, if that was more: the kernel
keeps the larger of both across ``exec``. The high-water mark of the address space begins anew.
"""

import runpy
import sys
from pathlib import Path


def peak_mib() -> float:
    """Return the most memory that this process has held, in MiB."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def main(file: str, module: str, arguments: list[str]) -> None:
    """Run the module, and write the figure into the file."""
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    finally:
        Path(file).write_text(str(peak_mib()))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
