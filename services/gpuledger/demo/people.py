"""Four people of the demo's institute, each with a question, a token of their own and the page that answers it."""

import datetime as dt
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlencode

from gpuledger.database.engine import Writer
from gpuledger.demo.month import CLUSTER, PERIOD, SICK_HOST, Preempted
from gpuledger.identity import store
from gpuledger.identity.caller import Scope
from gpuledger.identity.roles import Role

FILE = "people.json"
"""Name of the file in the demo's folder that the pages read people from."""

LIFETIME = dt.timedelta(days=365)
PI_ACCOUNT = "institute/science/proteins"
WORTH_TELLING_S = 1800
"""A wait of so long is seen on a line of hours."""

RESEARCHER_ACCOUNT = "institute/language/speech"


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody to look at the pages as.

    Args:
        key: How an address names them.
        name: Their name.
        about: Who they are.
        attempt: What to try first.
        role: Their role to the ledger.
        subtree: The account that they reach; None for all.
        page: The address below the pages' own, with its query.
        token: What signs them in; empty until it is made.
    """

    key: str
    name: str
    about: str
    attempt: str
    role: str
    subtree: str | None
    page: str
    token: str = ""


def people(preempted: Iterable[Preempted]) -> list[Person]:
    """Return the four people; the researcher is one whose job had to leave, the last that did so once and waited."""
    own = [one for one in preempted if one.account == RESEARCHER_ACCOUNT]
    times = Counter(one.workload for one in own)
    told = (
        one.workload for one in reversed(own) if times[one.workload] == 1 and one.waited_s >= WORTH_TELLING_S
    )
    job = next(told, "")
    return [
        Person(
            "maya", "Maya Lindqvist", "leads the institute",
            "read what changed in the week, and follow the first alert", Role.AUDITOR, None, _page("", "maya"),
        ),
        Person(
            "tomas", "Tomas Novak", "principal investigator of proteins, beyond the budget",
            "find the cause in the variance; then ask for more on the page Planning", Role.LEAD, PI_ACCOUNT,
            _page("budget-versus-actual", "tomas", period=PERIOD),
        ),
        Person(
            "ines", "Ines Duarte", f"researcher in speech; job {job} had to leave",
            f"see when it ran, waited and ran again, and what it cost: gpuledger why {job}", Role.RESEARCHER,
            RESEARCHER_ACCOUNT, _page("work", "ines", workload=job),
        ),
        Person(
            "omar", "Omar Haddad", f"operator; host {SICK_HOST} is sick",
            "see since when and why, on Audit what proves the books, on Admin who may ask", Role.ADMIN, None,
            _page("hosts", "omar"),
        ),
    ]  # fmt: skip


def _page(path: str, key: str, **query: str) -> str:
    return f"{path}?{urlencode({'as': key, 'cluster': CLUSTER, **query})}"


def signed_in(writer: Writer, found: Iterable[Person], now: dt.datetime) -> list[Person]:
    """Make a token for each, and return them with it."""
    made = []
    for person in found:
        order = store.Order(person.name, Role(person.role), Scope(person.subtree), LIFETIME, "demo")
        text, _ = store.create(writer, order, now)
        made.append(Person(**{**asdict(person), "token": text}))
    return made


def keep(path: Path, found: Iterable[Person]) -> None:
    """Write people with their tokens to a file that nobody else on the machine reads."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps([asdict(person) for person in found], indent=1))


def kept(path: Path) -> list[Person]:
    """Return the people of a file; none where there is no file."""
    return [Person(**one) for one in json.loads(path.read_text())] if path.exists() else []
