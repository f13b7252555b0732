"""Whether a line that somebody is told to type is one that the program takes."""

import re
import shlex
from collections.abc import Iterator, Sequence

from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from gpuledger.cli.app import app


def fault_of(arguments: Sequence[str]) -> str | None:
    """Return what is wrong with arguments of ``gpuledger``; None where every command and option of them exists."""
    found: object = get_command(app)
    words = list(arguments)
    while isinstance(found, TyperGroup):
        if not words or words[0].startswith("-"):
            return f"no command in {' '.join(arguments)}"
        below = found.commands
        if words[0] not in below:
            return f"no command {words[0]!r} in {' '.join(arguments)}"
        found = below[words.pop(0)]
    assert isinstance(found, TyperCommand)
    known = {
        flag
        for each in found.params
        if isinstance(each, TyperOption)
        for flag in (*each.opts, *each.secondary_opts)
    }
    unknown = [
        word for word in words if re.match(r"--?[A-Za-z]", word) and word.partition("=")[0] not in known
    ]
    return f"no option {unknown[0]} in gpuledger {' '.join(arguments)}" if unknown else None


def lines_of(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each line of shell blocks that calls ``gpuledger``, continued lines as one."""
    for block in re.findall(r"```(?:sh|console)?\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line.removeprefix("$ "), comments=True, posix=True)
            if words[:1] == ["gpuledger"] and len(words) > 1:
                end = next(
                    (at for at, word in enumerate(words) if re.fullmatch(r"[|&>]+.*", word)), len(words)
                )
                yield words[1:end]
