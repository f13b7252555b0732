"""The budget file: organisation, clusters, accounts. Read strictly: an unknown key is an error."""

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from gpuledger.kernel.accounts import check_path
from gpuledger.kernel.amounts import from_gpu_hours
from gpuledger.kernel.calendar import Calendar
from gpuledger.kernel.errors import NotFound, Refused

Period = Annotated[str, StringConstraints(pattern=r"^\d{4}-(0[1-9]|1[0-2])$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Organisation(_Strict):
    """Where days and periods are cut."""

    timezone: str = "UTC"
    period: Literal["month"] = "month"


class Cluster(_Strict):
    """What is installed; hosts of equal size."""

    gpus: Annotated[int, Field(ge=0, le=10_000_000)]
    model: Annotated[str, Field(min_length=1)]
    gpus_per_host: Annotated[int, Field(ge=1, le=10_000)] = 8


class Grant(_Strict):
    """GPU-time for a period."""

    cluster: Annotated[str, Field(min_length=1)]
    period: Period
    gpu_hours: Annotated[str, Field(coerce_numbers_to_str=True, pattern=r"^\d{1,12}(\.\d{1,6})?$")]
    priority: int | None = None
    expires: AwareDatetime | None = None
    rollover: str | None = None

    @property
    def gpu_ms(self) -> int:
        """The amount in gpu_ms."""
        from decimal import Decimal

        return from_gpu_hours(Decimal(self.gpu_hours))


class Account(_Strict):
    """A node of the program tree."""

    share: Annotated[int, Field(ge=0, le=10**9)] = 1
    overdraft: Literal["soft", "hard"] = "soft"
    grants: tuple[Grant, ...] = ()


class BudgetFile(_Strict):
    """The whole file."""

    organisation: Organisation | None = None
    clusters: dict[str, Cluster] = {}
    accounts: dict[str, Account] = {}


def read(path: Path) -> BudgetFile:
    """Read and validate a budget file.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML or a key or value does not fit; names each place.
    """
    try:
        raw: Any = yaml.load(path.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFound(
            f"{path}: no such file", hint="name a YAML file; docs/budget-file.md shows one"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Refused(f"{path}: is not YAML: {' '.join(str(error).split())}") from error
    try:
        file = BudgetFile.model_validate({} if raw is None else raw, strict=False)
        for account in file.accounts:
            check_path(account)
        if file.organisation:
            Calendar(file.organisation.timezone)
        _check_grants(file)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors())
        raise Refused(f"{path}: {faults}", hint="docs/budget-file.md lists every key") from error
    except Refused as error:
        raise Refused(f"{path}: {error.message}", hint=error.hint) from error
    if any(account.overdraft == "hard" for account in file.accounts.values()):
        raise Refused(
            f"{path}: overdraft: hard needs holds, which this version does not place yet",
            hint="use soft (the default): charges go on and the account is shown over budget",
        )
    return file


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice: YAML itself would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """Return the mapping of a node whose keys are all different."""
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} stands twice", key.start_mark
                )
        return super().construct_mapping(node, deep=deep)


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
