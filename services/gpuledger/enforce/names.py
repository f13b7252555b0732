"""Whose settings are whose: foreign names of accounts and queues against paths of ours. Pure.

The mapping says what a foreign name means, so each name that a scheduler lists is read by it as a submission would
be. A name that is written in the configuration, or on the object itself, goes before. Nothing is guessed: what leads
nowhere, or two names to one account, is told and left alone.
"""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gpuledger.kernel.accounts import UNMAPPED_ROOT, escape_part, join
from gpuledger.ledger.mapping import Foreign, Rules

SHOWN = 5


class Reading(NamedTuple):
    """The mapping as a cluster reads it at an instant.

    Args:
        rules: Its rules, with their dates.
        cluster: The cluster, below which an account stands that no rule reads.
        at_s: The instant.
    """

    rules: Rules
    cluster: str
    at_s: int


class Named(NamedTuple):
    """Which foreign name is set for which account.

    Args:
        paths: Foreign name -> path of ours, one to one.
        notes: What is left alone, and why.
    """

    paths: Mapping[str, str]
    notes: Sequence[str]

    def foreign(self, path: str) -> str | None:
        """Return the foreign name of an account, or None."""
        return next((name for name, found in self.paths.items() if found == path), None)


def resolve(
    foreign: Iterable[str],
    known: Iterable[str],
    reading: Reading | None,
    *,
    given: Mapping[str, str],
    managed: Sequence[str],
) -> Named:
    """Say which account each foreign name stands for.

    Args:
        foreign: The names that the scheduler lists.
        known: The accounts that the cycle issued to.
        reading: The mapping as the cluster reads it now; None where it says nothing of such names.
        given: Name -> path, where somebody wrote it down.
        managed: Globs of the names that may be changed.
    """
    names = sorted(name for name in set(foreign) if any(fnmatch.fnmatchcase(name, glob) for glob in managed))
    accounts = set(known)
    found: dict[str, str] = {}
    lost: list[str] = []
    for name in names:
        path = given.get(name) or _mapped(name, reading)
        if path in accounts:
            found[name] = path
        else:
            lost.append(name)
    twice = _twice(found)
    notes = [
        f"{', '.join(those)} all stand for {path}: none of them is changed; name one of them in the configuration"
        for path, those in sorted(twice.items())
    ]
    if lost:
        more = f" and {len(lost) - SHOWN} more" if len(lost) > SHOWN else ""
        notes.append(
            f"{', '.join(lost[:SHOWN])}{more}: no account of the cycle is known by that name, so nothing is changed"
        )
    return Named({name: path for name, path in found.items() if path not in twice}, tuple(notes))


def _mapped(name: str, reading: Reading | None) -> str | None:
    if reading is None:
        return None
    submitted = Foreign(join(reading.cluster, escape_part(name)), labels=(("account", name),))
    meant = reading.rules.meaning(submitted, reading.at_s).account
    return None if meant.startswith(UNMAPPED_ROOT + "/") else meant


def _twice(found: Mapping[str, str]) -> dict[str, list[str]]:
    by_path: dict[str, list[str]] = {}
    for name, path in found.items():
        by_path.setdefault(path, []).append(name)
    return {path: names for path, names in by_path.items() if len(names) > 1}
