"""What the pages promise is there: commands, links, pictures, decisions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)(?: \"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DECISION_HEADINGS = ("## Context", "## Decision", "## Consequences", "## Alternatives")


@pytest.mark.parametrize("command", ["make demo", "make test"])
def test_the_two_commands_of_the_readme_exist(repository: Path, command: str) -> None:
    assert command in (repository / "README.md").read_text()
    target = command.split()[1]
    assert re.search(rf"^{target}:", (repository / "Makefile").read_text(), re.MULTILINE)


def test_the_readme_opens_with_purpose_then_picture_then_commands(repository: Path) -> None:
    readme = (repository / "README.md").read_text()
    assert readme.startswith("# gpuledger\n")
    assert readme.index("docs/screenshots/") < readme.index("make demo") < readme.index("make test")


def test_the_readme_lists_the_commands_there_are(repository: Path) -> None:
    program = Path(sys.executable).with_name("gpuledger")
    page = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    commands = re.findall(r"^  ([a-z-]+)  ", page.partition("Commands:")[2], re.MULTILINE)
    table = re.findall(r"^\| `gpuledger ([a-z-]+)", (repository / "README.md").read_text(), re.MULTILINE)
    assert sorted(set(table)) == sorted(commands)


def test_relative_links_resolve(repository: Path, product_files: list[Path]) -> None:
    broken = [
        f"{page}: {target}"
        for page in product_files
        if page.suffix == ".md"
        for target in _relative_links((repository / page).read_text())
        if not (repository / page.parent / target).exists()
    ]
    assert broken == []


def test_links_to_headings_resolve(repository: Path, product_files: list[Path]) -> None:
    pages = {page: (repository / page).read_text() for page in product_files if page.suffix == ".md"}
    broken = [
        f"{page}: #{anchor}"
        for page, text in pages.items()
        for anchor in re.findall(r"\]\(#([^)]+)\)", FENCE.sub("", text))
        if anchor not in {_anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE)}
    ]
    assert broken == []


def test_every_task_the_contributing_page_names_exists(repository: Path) -> None:
    tasks = re.findall(r"^([a-z-]+)(?: \*\w+)?:(?!=)", (repository / "justfile").read_text(), re.MULTILINE)
    named = re.findall(r"`just ([a-z-]+)", (repository / "CONTRIBUTING.md").read_text())
    assert set(named) <= set(tasks)


def test_decisions_are_numbered_without_gaps_and_complete(repository: Path) -> None:
    decisions = sorted((repository / "docs/decisions").glob("[0-9]*.md"))
    assert [path.name[:4] for path in decisions] == [f"{n:04d}" for n in range(1, len(decisions) + 1)]
    incomplete = [p.name for p in decisions if not all(h in p.read_text() for h in DECISION_HEADINGS)]
    assert incomplete == []


def test_every_test_that_the_page_of_faults_names_exists(repository: Path) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (repository / "docs/faults.md").read_text())
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not (repository / path).exists() or f"def {name}(" not in (repository / path).read_text()
    ]
    assert named
    assert missing == []


def test_the_bundled_data_is_attributed(repository: Path) -> None:
    folder = repository / "services/gpuledger/demo/data"
    files = [path.name for path in folder.glob("*.csv*")]
    page, notice = (folder / "README.md").read_text(), (repository / "NOTICE").read_text()
    assert [name for name in files if name not in page or name not in notice] == []


def _relative_links(text: str) -> list[str]:
    targets = (match["target"].partition("#")[0] for match in LINK.finditer(FENCE.sub("", text)))
    return [target for target in targets if target and not re.match(r"[a-z-]+:", target)]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
