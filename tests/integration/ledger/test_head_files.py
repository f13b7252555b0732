"""The file of heads: whole lines only, one export at a time, and nothing but its own file in a Git folder."""

import datetime as dt
import os
import resource
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from gpuledger.kernel.errors import Refused, Unavailable
from gpuledger.ledger import head_files, heads
from gpuledger.ledger.heads import ExportedHead

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)


def head(rows: int = 1, book: str = "alpha") -> ExportedHead:
    return ExportedHead(book=book, rows=rows, head="ab" * 32, recorded_at=NOON, exported_at=NOON)


def export(path: Path, *exported: ExportedHead) -> str | None:
    with head_files.opened(path) as file:
        if exported:
            file.append(exported)
        return file.commit()


def rows(path: Path) -> list[int]:
    return [head.rows for head in head_files.read(path).heads]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=somebody", "-c", "user.email=somebody@example.org", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Git folder with a commit and, beside it, work that is somebody else's: staged, changed and new."""
    path = tmp_path / "anchor"
    path.mkdir()
    git(path, "init", "--quiet")
    (path / "notes").write_text("one\n")
    git(path, "add", "notes")
    git(path, "commit", "--quiet", "--message=notes")
    (path / "notes").write_text("two\n")
    (path / "staged").write_text("staged\n")
    git(path, "add", "staged")
    (path / "new").write_text("new\n")
    return path


OTHERS = ["A  staged", "?? new", "M notes"]


def test_a_file_is_made_and_grows_by_lines(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    assert export(path, head(1)) is None
    before = path.read_bytes()
    assert export(path, head(2), head(1, "beta")) is None
    assert path.read_bytes() == before + heads.lines([head(2), head(1, "beta")])
    assert rows(path) == [1, 2, 1]


def test_what_a_crash_left_is_passed_over_and_cut_off_by_the_next_export(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    export(path, head(1), head(2))
    path.write_bytes(path.read_bytes()[:-9])
    assert rows(path) == [1]
    export(path, head(3))
    assert path.read_bytes() == heads.lines([head(1), head(3)])


def test_a_process_killed_at_any_moment_of_an_export_leaves_a_file_that_reads(tmp_path: Path) -> None:
    """The file system stops each write after a few more bytes, as a full disk or a crash would."""
    path = tmp_path / "heads"
    export(path, head(1))
    whole = path.read_bytes()
    for size in (1, 40, len(whole) - 1):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # the kernel kills who writes beyond the limit
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + size, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            with head_files.opened(path) as file:
                file.append([head(2)])
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status)
        assert path.read_bytes()[: len(whole)] == whole
        assert len(path.read_bytes()) == len(whole) + size
        assert rows(path) == [1]


def test_a_disk_that_refuses_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    export(path, head(1))
    whole = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    heeded = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # refused with an error instead of a signal
    try:
        with head_files.opened(path) as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 20, hard))
            with pytest.raises(Unavailable, match="cannot be written: File too large"):
                file.append([head(2)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, heeded)
    assert path.read_bytes() == whole


def test_two_exports_at_once_write_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "heads"

    def append_next() -> None:
        for _ in range(10):
            with head_files.opened(path) as file:
                file.append([head(len(file.exports.heads) + 1)])

    threads = [threading.Thread(target=append_next) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(path) == list(range(1, 41))


def test_a_file_with_a_line_that_is_no_head_is_not_appended_to(tmp_path: Path) -> None:
    path = tmp_path / "heads"
    path.write_text("nonsense\n")
    with pytest.raises(Refused, match=f"{path}:1 is no exported head"):
        export(path, head())
    assert path.read_text() == "nonsense\n"


@pytest.mark.parametrize("content", [None, b"", heads.lines([head()])[:-1]])
def test_nothing_to_hold_a_ledger_against_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "heads"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(Refused, match="cannot be read" if content is None else "holds no exported head"):
        head_files.read(path)


def test_a_path_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="cannot be opened: No such file or directory"):
        export(tmp_path / "missing" / "heads", head())


@pytest.mark.parametrize("reading", [True, False])
def test_a_folder_without_git_is_refused(tmp_path: Path, *, reading: bool) -> None:
    with pytest.raises(Refused, match="is a folder without Git") as refused:
        head_files.read(tmp_path) if reading else export(tmp_path, head())
    assert "git init" in refused.value.hint
    assert list(tmp_path.iterdir()) == []


def test_a_git_folder_gets_a_commit_of_that_file_alone(folder: Path) -> None:
    commit = export(folder, head(1))
    assert commit == git(folder, "rev-parse", "HEAD")
    assert git(folder, "show", "--name-only", "--format=%an|%s", "HEAD").splitlines() == [
        "gpuledger|Export the heads of the ledger", "", "heads.jsonl",
    ]  # fmt: skip
    assert sorted(line.strip() for line in git(folder, "status", "--porcelain").splitlines()) == sorted(
        OTHERS
    )
    assert rows(folder) == [1]
    second = export(folder, head(2))
    assert git(folder, "rev-parse", "HEAD~1") == commit != second


def test_nothing_new_makes_no_commit(folder: Path) -> None:
    commit = export(folder, head(1))
    assert export(folder) is None
    assert git(folder, "rev-parse", "HEAD") == commit


def test_a_repository_without_a_commit_gets_its_first(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    assert export(tmp_path, head()) == git(tmp_path, "rev-parse", "HEAD")


def test_a_repository_that_refuses_says_why_and_the_next_export_commits(folder: Path) -> None:
    hook = folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'not on a Sunday' >&2; exit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Refused, match="not on a Sunday") as refused:
        export(folder, head(1))
    assert "export again" in refused.value.hint
    hook.unlink()
    assert export(folder) == git(folder, "rev-parse", "HEAD")
    assert git(folder, "show", "HEAD:heads.jsonl") == heads.lines([head(1)]).decode().strip()


def test_a_machine_without_git_is_told_so_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder / "nowhere"))
    with pytest.raises(Refused, match="git is not installed"):
        export(folder, head())
    assert not (folder / "heads.jsonl").exists()


def test_another_repository_named_by_the_environment_is_not_the_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other.git"))
    commit = export(folder, head())
    monkeypatch.delenv("GIT_DIR")
    assert commit == git(folder, "rev-parse", "HEAD")
