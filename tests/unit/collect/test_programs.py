"""A scheduler's commands are bounded in time, tried again, and write as they must whoever runs them."""

from pathlib import Path

import pytest
from tests.collecting import Bin

from gpuledger.collect.programs import CommandFailed, Programs, surroundings
from gpuledger.kernel.errors import Refused


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bin:
    return Bin(tmp_path / "bin", monkeypatch)


def programs(tmp_path: Path, **limits: float) -> Programs:
    return Programs(tmp_path / "answers", **{"pause_s": 0.0, **limits})  # type: ignore[arg-type]


def test_an_answer_is_kept_under_the_name_of_its_command(commands: Bin, tmp_path: Path) -> None:
    commands.put("sacct", 'printf "%s|" "$@"')

    answer = programs(tmp_path).ask("sacct", "--json", "-S", "x y")

    assert answer == tmp_path / "answers" / "sacct.out"
    assert answer.read_text() == "--json|-S|x y|"


def test_a_command_that_fails_once_is_asked_again_and_nothing_is_said_of_it(
    commands: Bin, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    commands.put(
        "sacct",
        f"if [ -e {tmp_path}/seen ]; then echo fine; else touch {tmp_path}/seen; echo half; exit 1; fi",
    )

    assert programs(tmp_path).ask("sacct").read_text() == "fine\n"
    assert capfd.readouterr() == ("", "")


def test_a_command_that_fails_for_good_says_what_it_complained_of_and_leaves_the_answer_before(
    commands: Bin, tmp_path: Path
) -> None:
    commands.put("sacct", "echo good")
    before = programs(tmp_path).ask("sacct")
    commands.put(
        "sacct", f"echo x >>{tmp_path}/tries; echo half; echo 'slurm_persist_conn_open: no route' >&2; exit 7"
    )

    with pytest.raises(
        CommandFailed, match="sacct failed with status 7: slurm_persist_conn_open: no route"
    ) as failed:
        programs(tmp_path, attempts=2).ask("sacct", "--json")

    assert failed.value.hint == "run it by hand: sacct --json"
    assert (tmp_path / "tries").read_text() == "x\nx\n"
    assert before.read_text() == "good\n"


def test_a_command_that_hangs_is_given_up(commands: Bin, tmp_path: Path) -> None:
    commands.put("squeue", "exec sleep 60")

    with pytest.raises(CommandFailed, match=r"squeue did not answer within 0\.2 s"):
        programs(tmp_path, attempts=1, timeout_s=0.2).ask("squeue")


def test_a_command_that_is_not_installed_is_refused_at_once(commands: Bin, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="sacct is not installed here"):
        programs(tmp_path).ask("sacct")


def test_preferences_of_whoever_runs_it_are_left_out_and_the_zone_is_utc() -> None:
    mine = {"PATH": "/bin", "SLURM_CONF": "/etc/x", "TZ": "Asia/Tokyo", "SACCT_FORMAT": "jobid", "SQUEUE_USERS": "me",
            "SINFO_PARTITION": "p", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "8"}  # fmt: skip

    assert surroundings(mine) == {
        "PATH": "/bin", "SLURM_CONF": "/etc/x", "TZ": "UTC", "LC_ALL": "C", "SLURM_BITSTR_LEN": "0",
    }  # fmt: skip
