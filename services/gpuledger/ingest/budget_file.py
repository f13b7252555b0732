"""The budget file: organisation, clusters, accounts. Read strictly: an unknown key is an error."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime, Field, StringConstraints
from pydantic_core import PydanticCustomError

from gpuledger.events.fields import PRIORITY_MAX
from gpuledger.ingest.yaml_file import ClusterName, Strict, Word, read_yaml
from gpuledger.kernel.accounts import check_path, owner_of
from gpuledger.kernel.amounts import from_gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import Refused
from gpuledger.kernel.rollover import written

Period = Annotated[str, StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]


def _rollover(text: str) -> str | None:
    try:
        return written(text)
    except Refused as error:  # named with its place, beside the other faults of the file
        said = f"{error.message.removeprefix('rollover: ')}; {error.hint}"
        raise PydanticCustomError("rollover", "{said}", {"said": said}) from error


class Organisation(Strict):
    """Where days and periods are cut."""

    timezone: str = "UTC"
    period: Literal["month"] = "month"


class Cluster(Strict):
    """What is installed; hosts of equal size."""

    gpus: Annotated[int, Field(ge=0, le=10_000_000)]
    model: Word
    gpus_per_host: Annotated[int, Field(ge=1, le=10_000)] = 8


class Grant(Strict):
    """GPU-time for a period: a lot, unless it is a limit.

    Args:
        cluster: Whose GPU-time.
        period: ``YYYY-MM``.
        gpu_hours: The whole grant of the account for that cluster and period.
        priority: The lower number is consumed first; none after every number.
        expires: When the lot is gone; the beginning of a day of the organisation, which ``budgets.plan`` checks.
        rollover: What the next period gets, in the spelling of ``ledger.lots.written``.
    """

    cluster: ClusterName
    period: Period
    gpu_hours: Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^\d{1,12}(\.\d{1,6})?$")]
    priority: Annotated[int, Field(ge=-PRIORITY_MAX, le=PRIORITY_MAX)] | None = None
    expires: AwareDatetime | None = None
    rollover: Annotated[str, AfterValidator(_rollover)] | None = None

    @property
    def gpu_ms(self) -> int:
        """The amount in gpu_ms."""
        from decimal import Decimal

        return from_gpu_hours(Decimal(self.gpu_hours))


class Account(Strict):
    """A node of the program tree."""

    share: Annotated[int, Field(ge=0, le=10**9)] = 1
    overdraft: Literal["soft", "hard"] | None = None
    grants: tuple[Grant, ...] = ()


class BudgetFile(Strict):
    """The whole file."""

    organisation: Organisation | None = None
    clusters: dict[ClusterName, Cluster] = Field(default_factory=dict)
    accounts: dict[str, Account] = Field(default_factory=dict)


def read(path: Path) -> BudgetFile:
    """Read and validate a budget file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    file = read_yaml(path, BudgetFile, "docs/budget-file.md")
    try:
        for name in file.accounts:
            check_path(name)
        _check_overdrafts(file)
        if file.organisation:
            Calendar(file.organisation.timezone)
        _check_grants(file)
    except Refused as error:
        raise Refused(f"{path}: {error.message}", hint=error.hint) from error
    return file


def _check_overdrafts(file: BudgetFile) -> None:
    for name, account in file.accounts.items():
        if account.overdraft is not None and (owner := owner_of(name)) != name:
            raise Refused(
                f"accounts.{name}.overdraft: what {owner} owns itself is as hard as {owner} is",
                hint=f"write it under accounts.{owner}",
            )


def _grants(file: BudgetFile) -> list[tuple[str, str, Grant]]:
    return [
        (name, f"accounts.{name}.grants[{n}]", grant)
        for name, account in file.accounts.items()
        for n, grant in enumerate(account.grants)
    ]


def _check_grants(file: BudgetFile) -> None:
    seen: set[tuple[str, str, str]] = set()
    for name, place, grant in _grants(file):
        try:
            grant.gpu_ms  # noqa: B018 - the conversion is the check
        except ValueError as error:
            raise Refused(f"{place}.gpu_hours: {error}") from error
        if (key := (name, grant.cluster, grant.period)) in seen:
            raise Refused(
                f"{place}: {name} has another grant on {grant.cluster} for {grant.period}",
                hint="write one grant with the sum",
            )
        seen.add(key)
