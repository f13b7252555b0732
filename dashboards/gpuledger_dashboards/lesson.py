"""The lesson: four teams want 60 GPUs each of 100. First they rank their own work, then they get budgets. Pure.

The old world is a game of its own, with the rule that the page states; what budgets give is asked of the policy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from gpuledger.client.plans import Divided, Node, Tree

TEAMS = ("A", "B", "C", "D")
PROGRAMS = {"north": ("A", "B"), "south": ("C", "D")}
"""Program -> its teams, for the rule of the tree; both programs have the same share."""

SUPPLY = 100
WANTED = 60
BUDGETS = (40, 30, 20, 10)
GPUS_MAX = 200


@dataclass(frozen=True, slots=True)
class Round:
    """One round of the old world.

    Args:
        high: The teams that call their work HIGH by now, in the order in which they began to.
        gpus: Team -> what it gets.
    """

    high: tuple[str, ...]
    gpus: Mapping[str, Fraction]

    @property
    def newest(self) -> str | None:
        """The team that began to call its work HIGH in this round; None in the first."""
        return self.high[-1] if self.high else None

    @property
    def is_over(self) -> bool:
        """Whether every team calls its work HIGH."""
        return len(self.high) == len(TEAMS)


def old_world(supply: int = SUPPLY, wanted: int = WANTED) -> list[Round]:
    """Return the rounds until every team calls its work HIGH.

    Who is HIGH is served first, and equals share alike. After each round the team that got least, the first by name
    among equals, and is not HIGH yet, makes its work HIGH.
    """
    rounds = [Round((), _served((), supply, wanted))]
    while not rounds[-1].is_over:
        last = rounds[-1]
        waiting = [team for team in TEAMS if team not in last.high]
        loser = min(waiting, key=lambda team: (last.gpus[team], team))
        high = (*last.high, loser)
        rounds.append(Round(high, _served(high, supply, wanted)))
    return rounds


def _served(high: Sequence[str], supply: int, wanted: int) -> dict[str, Fraction]:
    left, found = Fraction(supply), dict[str, Fraction]()
    for group in (high, [team for team in TEAMS if team not in high]):
        each = min(Fraction(wanted), left / len(group)) if group else Fraction(0)
        found |= dict.fromkeys(group, each)
        left -= each * len(group)
    return found


@dataclass(frozen=True, slots=True)
class Preset:
    """Budgets and wishes that show something.

    Args:
        key: Its name in the page's address and texts.
        shares: Of the teams, in their order.
        wanted: The GPUs that each asks for.
    """

    key: str
    shares: tuple[int, int, int, int]
    wanted: tuple[int, int, int, int] = (WANTED,) * 4


PRESETS = (
    Preset("budgets", BUDGETS),
    Preset("zero", (0, 30, 20, 10)),
    Preset("equal", (1, 1, 1, 1)),
    Preset("surplus", BUDGETS, (10, 60, 60, 60)),
    Preset("nobody", (0, 0, 0, 0)),
)


def flat_tree(shares: Mapping[str, int], wanted: Mapping[str, int]) -> Tree:
    """Return the four teams side by side."""
    return _tree({team: team.lower() for team in TEAMS}, shares, wanted)


def program_tree(shares: Mapping[str, int], wanted: Mapping[str, int]) -> Tree:
    """Return the four teams below two programs."""
    return _tree(paths(), shares, wanted)


def paths() -> dict[str, str]:
    """Return team -> its account below its program."""
    return {team: f"{program}/{team.lower()}" for program, teams in PROGRAMS.items() for team in teams}


def _tree(accounts: Mapping[str, str], shares: Mapping[str, int], wanted: Mapping[str, int]) -> Tree:
    nodes = [
        Node(account=accounts[team], share=shares[team], demand_milli=wanted[team] * 1000) for team in TEAMS
    ]
    return Tree(supply_milli=SUPPLY * 1000, accounts=tuple(nodes))


@dataclass(frozen=True, slots=True)
class Bar:
    """What a team asks for or gets.

    Args:
        team: Its letter.
        gpus: How many.
        kind: What it is called in the legend.
    """

    team: str
    gpus: float
    kind: str


def round_bars(now: Round, high: str, other: str) -> list[Bar]:
    """Return a bar per team, called by what it says of its own work."""
    return [Bar(team, float(now.gpus[team]), high if team in now.high else other) for team in TEAMS]


def budget_bars(
    wanted: Mapping[str, int], flat: Divided, tree: Divided, names: tuple[str, str, str]
) -> list[Bar]:
    """Return three bars per team: what it asks for, and what it is issued under either rule."""
    below = paths()
    return [
        Bar(team, gpus, kind)
        for team in TEAMS
        for kind, gpus in zip(
            names,
            (
                float(wanted[team]),
                float(flat.issued[team.lower()]),
                float(tree.issued[below[team]]),
            ),
            strict=True,
        )
    ]


def whole(gpus: Fraction) -> str:
    """Return GPUs for people: thirds as thirds."""
    full, rest = divmod(gpus, 1)
    thirds = {Fraction(0): "", Fraction(1, 3): "⅓", Fraction(2, 3): "⅔", Fraction(1, 2): "½"}
    return f"{full}{thirds[rest]}" if rest in thirds else f"{float(gpus):.1f}"
