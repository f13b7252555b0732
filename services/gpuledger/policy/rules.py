"""By which version of the rules a cycle was decided: what tells a record that was changed from rules that were."""

from typing import Final

RULES: Final = 2
"""The version of what this program decides of a state and its knobs. Whoever changes a decision, a reservation or what
is issued, for any state, takes the next number, and says in docs/fairness.md what is decided otherwise: a test holds
the decisions of each number (docs/decisions/0069)."""

UNNUMBERED: Final = 0
"""Records from before the rules had numbers."""


def told(rules: int) -> str:
    """Return how a version of the rules is spoken of."""
    return "before rules had numbers" if rules == UNNUMBERED else f"by version {rules} of the rules"
