"""SQL files beside the assets; a line ``-- include: NAME`` is replaced by ``sql/NAME.sql`` of this package."""

import re
from functools import cache
from importlib import resources

PACKAGE = "gpuledger_pipelines"
_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """Return the SQL of ``SUBJECT/NAME``, such as ``usage/usage_hour``, with its includes in place."""
    subject, _, stem = name.partition("/")
    text = (resources.files(f"{PACKAGE}.defs.{subject}") / "sql" / f"{stem}.sql").read_text()
    return _INCLUDE.sub(lambda match: _included(match.group(1)), text)


def _included(name: str) -> str:
    return (resources.files(PACKAGE) / "sql" / f"{name}.sql").read_text().rstrip()
