"""Nothing in the repository belongs to one machine or one person."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

FORBIDDEN = {
    "a path of one machine": r"(?<![\w.~}/$-])/(?:home|Users|root|work|mnt|scratch)/[\w.-]+",
    "a package registry": (
        r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|repo1?\.maven\.(?:apache\.)?org|conda\.anaconda\.org)\b"
    ),
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "an access token": r"\b(?:ghp_\w{36}|github_pat_\w{22,}|AKIA[0-9A-Z]{16}|xox[abp]-[\w-]{10,})\b",
    "a password in an address": r"\b\w+://[\w.-]+:(?!gpuledger@|\$|\{|<|\.\.\.)[^\s@/:]+@",
}


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_holds(kind: str, repository: Path, product_files: list[Path]) -> None:
    pattern = re.compile(FORBIDDEN[kind])
    found = [
        f"{path}:{number}: {match.group()}"
        for path, number, line in _lines(repository, product_files)
        if (match := pattern.search(line))
    ]
    assert found == []


def _lines(repository: Path, files: list[Path]) -> Iterator[tuple[Path, int, str]]:
    for path in files:
        if path.name == Path(__file__).name or path.suffix in {".gz", ".png", ".parquet"}:
            continue
        try:
            text = (repository / path).read_text()
        except UnicodeDecodeError:
            continue  # a fixture with broken bytes on purpose
        for number, line in enumerate(text.splitlines(), start=1):
            yield path, number, line
