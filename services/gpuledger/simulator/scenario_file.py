"""The scenario file: one YAML file describes what is simulated. Shipped scenarios are found by their bare names."""

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gpuledger.ingest.yaml_file import load_yaml, validated
from gpuledger.kernel.accounts import check_path, lineage
from gpuledger.kernel.amounts import GPU_MILLI
from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.kernel.near import did_you_mean
from gpuledger.simulator.demand.described import demand
from gpuledger.simulator.demand.traces import Trace, read_trace
from gpuledger.simulator.scenario import AccountSpec, FaultModel, Groups, HostSpec, Scenario
from gpuledger.simulator.scenario_keys import AccountKeys, ClusterKeys, FaultKeys, HostsKeys, ScenarioKeys
from gpuledger.sources.protocol import ImportOptions

DOCS = "docs/scenarios.md"
SHIPPED = Path(__file__).parent / "scenarios"

_BUNDLED = Path(__file__).parents[1] / "demo" / "data"
"""The traces that come with the demo; a layer above this one, so that its files are named, not its package."""

_TRACES = {
    "philly": ("philly.csv.gz",),
    "openb": ("openb_node_list_gpu_node.csv.gz", "openb_pod_list_default.csv.gz"),
}
_SUFFIX = ".yaml"
_START = dt.date(2026, 1, 5)
"""A Monday: weeks of a simulation begin as weeks do."""

_DAYS = 30
_WARM_UP_DAYS = 7
_EXTENDED_MAX = 16
_HOUR_S = 3_600
_DAY_S = 86_400


def scenario_names() -> list[str]:
    """Return the names of the scenarios that come with gpuledger, sorted."""
    return sorted(path.stem for path in SHIPPED.glob(f"*{_SUFFIX}"))


def read_scenario(name_or_path: str) -> Scenario:
    """Read a scenario.

    Args:
        name_or_path: The name of one that comes with gpuledger, or the path of a YAML file.

    Raises:
        NotFound: When there is no such scenario; lists those that there are.
        Refused: When it is not YAML, or a key or value does not fit; names file and place.
    """
    path = _find(name_or_path, Path())
    keys = validated(path, _loaded(path), ScenarioKeys, DOCS)
    try:
        return _scenario(keys, path)
    except Refused as error:
        raise type(error)(f"{path}: {error.message}", hint=error.hint) from error


def _find(name_or_path: str, folder: Path) -> Path:
    if name_or_path in scenario_names():
        return SHIPPED / f"{name_or_path}{_SUFFIX}"
    path = folder / name_or_path
    if path.suffix not in {_SUFFIX, ".yml"} and not path.exists():
        known = scenario_names()
        raise NotFound(
            f"there is no scenario {name_or_path}",
            hint=did_you_mean(name_or_path, known, f"there are {', '.join(known)}")
            + f", or name a YAML file; {DOCS} describes them",
        )
    return path


def _loaded(path: Path) -> Any:  # noqa: ANN401 - whatever stands in the file
    """Return what stands in a file, on top of what it extends."""
    layers: list[Any] = []
    seen: list[Path] = []
    while True:
        if path.resolve() in seen or len(seen) == _EXTENDED_MAX:
            raise Refused(
                f"{seen[0]}: extends {path}, and that comes back to it" if path.resolve() in seen
                else f"{seen[0]}: extends more than {_EXTENDED_MAX} others, one after another",
                hint="a scenario extends another one, not itself",
            )  # fmt: skip
        seen.append(path.resolve())
        layer = _placed(load_yaml(path, DOCS), path.parent)
        layers.append(layer)
        if not isinstance(layer, dict) or not isinstance(base := layer.get("extends"), str):
            break
        try:
            path = _find(base, path.parent)
        except NotFound as error:
            raise NotFound(f"{path}: extends: {error.message}", hint=error.hint) from error
    merged = layers.pop()
    while layers:
        merged = _over(merged, layers.pop())
    return merged


def _placed(layer: Any, folder: Path) -> Any:  # noqa: ANN401 - whatever stands in the file
    """Return what stands in a file with the paths of a trace as they are from here, not from the file's folder.

    What extends it lies elsewhere as a rule, and says nothing of where its trace is.
    """
    if not isinstance(layer, dict) or not isinstance(layer.get("demand"), dict):
        return layer
    demand = dict(layer["demand"])
    match demand.get("path"):
        case str(written):
            demand["path"] = str(folder / written)
        case list(written) if all(isinstance(each, str) for each in written):
            demand["path"] = [str(folder / each) for each in written]
    return {**layer, "demand": demand}


def _over(below: Any, above: Any) -> Any:  # noqa: ANN401 - whatever stands in files
    """Return a mapping on top of another, key by key; null takes a key back, anything else takes its place.

    How often numbers are drawn (``{1: 4, 8: 1}``) is one value: whoever says it anew says all of it.
    """
    if (
        not isinstance(below, dict)
        or not isinstance(above, dict)
        or any(isinstance(key, int) for key in above)
    ):
        return above
    merged = {key: value for key, value in below.items() if key not in above}
    merged |= {
        key: _over(below.get(key), value)
        for key, value in above.items()
        if value is not None or key not in below
    }
    return {key: merged[key] for key in [*below, *above] if key in merged}


def _scenario(keys: ScenarioKeys, path: Path) -> Scenario:
    for account in keys.accounts:
        check_path(account)
    trace = _trace(keys)
    name = keys.name or path.stem
    cluster = keys.cluster.name or name
    hosts = _hosts(keys.cluster, cluster, trace)
    start_s = _start_s(keys.start, trace)
    return Scenario(
        name=name,
        cluster=cluster,
        start_s=start_s,
        days=keys.days or (_DAYS if trace is None else trace.days_from(start_s)),
        warm_up_days=_default(keys.warm_up_days, _WARM_UP_DAYS if trace is None else 0),
        hosts=hosts,
        accounts=tuple(_accounts(keys.accounts, trace)),
        demand=demand(
            keys.demand,
            keys.accounts,
            supply_milli=sum(host.gpus_milli for host in hosts),
            start_s=start_s,
            trace=trace,
            models=[host.gpu_model for host in hosts],
        ),
        faults=_faults(keys.faults),
        policy=PolicyConfig.of({knob: value for knob, value in keys.policy.items() if value is not None}),
        cycle_s=keys.cycle_s,
        groups=Groups(
            medium_milli=keys.groups.medium_gpus * GPU_MILLI, large_milli=keys.groups.large_gpus * GPU_MILLI
        ),
        worlds=dict(keys.worlds.items()),
        seed=keys.seed,
        notes=() if trace is None else tuple(trace.notes),
    )


def _default(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _start_s(start: dt.date | None, trace: Trace | None) -> int:
    if start is None and trace is not None:
        return trace.start_s
    return seconds(dt.datetime.combine(start or _START, dt.time(), dt.UTC))


def _trace(keys: ScenarioKeys) -> Trace | None:
    name, written = keys.demand.trace, keys.demand.path
    if name is None:
        return None
    if written is None:
        if name not in _TRACES:
            raise Refused(
                f"demand.path: no trace of {name} comes with gpuledger",
                hint=f"write the path of its file; without one there are {', '.join(_TRACES)}",
            )
        paths = [_BUNDLED / file for file in _TRACES[name]]
    else:
        paths = [Path(file) for file in ([written] if isinstance(written, str) else written)]
    return read_trace(name, paths, ImportOptions(timezone=keys.demand.timezone))


def _hosts(keys: ClusterKeys, cluster: str, trace: Trace | None) -> tuple[HostSpec, ...]:
    if keys.hosts is None and not keys.more and trace is not None and trace.hosts:
        return tuple(trace.hosts)
    described: list[HostsKeys] = [keys, *keys.more]
    for number, kind in enumerate(described):
        if kind.hosts is None:
            place = f"cluster.more.{number - 1}.hosts" if number else "cluster.hosts"
            raise Refused(f"{place}: is missing", hint="write how many hosts there are")
    return tuple(
        HostSpec(
            host=f"{cluster}-{number:04}",
            gpus_milli=kind.gpus_per_host * GPU_MILLI,
            gpu_model=kind.model,
            rack=rack,
        )
        for number, (kind, rack) in enumerate(_racked(described), start=1)
    )


def _racked(described: list[HostsKeys]) -> Iterator[tuple[HostsKeys, str]]:
    """Yield each host with its rack; hosts of different kinds share none."""
    before = 0
    for kind in described:
        hosts = kind.hosts or 0
        for number in range(hosts):
            yield kind, f"rack-{before + number * kind.racks // hosts + 1:02}"
        before += kind.racks


def _accounts(written: Mapping[str, AccountKeys], trace: Trace | None) -> Iterator[AccountSpec]:
    """Yield every node: as written, those above them, and those of a trace, with share 1."""
    all_keys = dict(written)
    for path in [*written, *(trace.accounts if trace else ())]:
        for node in lineage(path):
            all_keys.setdefault(node, AccountKeys())
    for path, keys in all_keys.items():
        limit = keys.team_limit_gpus
        yield AccountSpec(
            account=path, share=keys.share, team_limit_milli=None if limit is None else limit * GPU_MILLI
        )


def _faults(keys: FaultKeys) -> FaultModel:
    return FaultModel(
        mtbf_s=None if keys.mtbf_days is None else int(keys.mtbf_days * _DAY_S),
        repair_s=int(keys.repair_hours * _HOUR_S),
        drain_mtbf_s=None if keys.drain_mtbf_days is None else int(keys.drain_mtbf_days * _DAY_S),
        drain_repair_s=int(keys.drain_repair_hours * _HOUR_S),
        hands_permille=int(keys.hands * 1000),
    )
