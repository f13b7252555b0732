"""docs/traps.md says in which formats each trap of schedulers is tried, and says so truly."""

import re
import subprocess
import sys
from pathlib import Path

ROWS = 57


def test_each_trap_is_tried_in_the_formats_that_the_page_names(repository: Path) -> None:
    listed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/conformance",
        ],
        cwd=repository,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    tried: dict[int, set[str]] = {number: set() for number in range(1, ROWS + 1)}
    for line in listed.splitlines():
        if line.startswith("trap\t"):
            _, number, source, _ = line.split("\t")
            tried[int(number)].add(source)
    page = (repository / "docs/traps.md").read_text()
    told = {
        int(number): set(re.findall(r"`([a-z0-9-]+)`", formats))
        for number, formats in re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", page, re.MULTILINE)
    }
    assert told == tried
    assert all(tried.values())
