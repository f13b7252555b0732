"""The table of Slurm's own errors, as the installed library prints it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from infra.slurm import packages

from gpuledger.enforce.slurm_errors import PASSING

ASK = """
import ctypes, json, sys
table = ctypes.CDLL(sys.argv[1]).slurm_strerror
table.restype, table.argtypes = ctypes.c_char_p, [ctypes.c_int]
json.dump({number: table(int(number)).decode() for number in sys.argv[2:]}, sys.stdout)
"""


@pytest.mark.slurm
def test_what_may_pass_is_said_in_the_words_of_slurms_own_table() -> None:
    packages.ensure()
    (library,) = Path("/usr/lib").glob("*/slurm-wlm/libslurmfull.so")
    ran = subprocess.run(  # a process of its own: the library looks around when it is loaded
        [sys.executable, "-c", ASK, str(library), *map(str, PASSING)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert {int(number): said for number, said in json.loads(ran.stdout).items()} == PASSING
