"""What is deployed is what there is: commands, options, settings, metrics, files; and no more rights than it needs."""

import configparser
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from infra.prometheus import promtool
from tests.house.commands import fault_of, lines_of

from gpuledger.api.metrics import MetricName
from gpuledger.settings import Settings

COMPOSE = "infra/compose.yaml"
OURS = ("gpuledger:", "gpuledger-dagster:")
OF_COMPOSE = {
    "GPULEDGER_VERSION", "GPULEDGER_POSTGRES_PASSWORD", "GPULEDGER_METRICS_TOKEN_FILE", "GPULEDGER_GRAFANA_PASSWORD",
    "GPULEDGER_KAFKA_PORT", "GPULEDGER_POSTGRES_PORT", "GPULEDGER_API_PORT", "GPULEDGER_PAGES_PORT",
    "GPULEDGER_DAGSTER_PORT", "GPULEDGER_PROMETHEUS_PORT", "GPULEDGER_GRAFANA_PORT",
}  # fmt: skip
"""Variables that the compose file itself reads."""
OF_UNITS = {"GPULEDGER_CLUSTER", "GPULEDGER_LOGIN_FILE"}
SUFFIXES = r"(?:_total|_info|_bucket|_sum|_count)?"


@pytest.fixture(scope="module")
def services(repository: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load((repository / COMPOSE).read_text())["services"]
    return found


@pytest.fixture(scope="module")
def ours(services: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: each for name, each in services.items() if each["image"].startswith(OURS)}


@pytest.fixture(scope="module")
def units(repository: Path) -> dict[str, configparser.RawConfigParser]:
    found = {}
    for path in sorted((repository / "infra/systemd").glob("*.service")):
        parser = configparser.RawConfigParser(strict=False)
        parser.optionxform = str  # type: ignore[assignment, method-assign] - systemd's keys have capitals
        parser.read(path)
        found[path.stem] = parser
    return found


def test_every_stage_is_there(services: dict[str, dict[str, Any]]) -> None:
    assert services.keys() == {
        "kafka", "postgres", "migrate", "ingest", "budgets", "telemetry", "policy", "api", "pages",
        "dagster-webserver", "dagster-daemon", "prometheus", "grafana",
    }  # fmt: skip
    assert {name for name, each in services.items() if "profiles" not in each} == {"kafka", "postgres"}


def test_our_services_have_no_more_rights_than_they_need(ours: dict[str, dict[str, Any]]) -> None:
    for name, each in ours.items():
        assert each["user"].split(":")[0] not in ("0", "root"), name
        assert each["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in each["security_opt"], name


def test_every_service_is_bounded_watched_and_started_again(services: dict[str, dict[str, Any]]) -> None:
    for name, each in services.items():
        assert "mem_limit" in each, name
        if name == "migrate":
            assert each["restart"] == "no"
            continue
        assert each["healthcheck"]["test"][0] == "CMD", name
        assert name in ("kafka", "postgres") or each["restart"] == "unless-stopped", name


def test_what_is_mounted_is_there(repository: Path, services: dict[str, dict[str, Any]]) -> None:
    mounted = [
        volume.split(":")[0]
        for each in services.values()
        for volume in each.get("volumes", ())
        if volume[0] == "."
    ]
    assert mounted
    assert [path for path in mounted if not (repository / "infra" / path).exists()] == []


def _of_services(ours: dict[str, dict[str, Any]]) -> Iterator[list[str]]:
    for name, each in ours.items():
        if each["image"].startswith("gpuledger:") and "entrypoint" not in each:
            yield each["command"]
        check = each.get("healthcheck", {}).get("test", [])
        if check[1:2] == ["gpuledger"]:
            yield check[2:]
        assert name


def test_every_command_of_the_services_exists(ours: dict[str, dict[str, Any]]) -> None:
    found = list(_of_services(ours))
    assert ["policy", "run"] in found
    assert [fault for each in found if (fault := fault_of(each))] == []


def test_every_command_of_the_units_exists(units: dict[str, configparser.RawConfigParser]) -> None:
    started = {name: shlex.split(unit["Service"]["ExecStart"]) for name, unit in units.items()}
    assert started["gpuledger-policy"] == ["/opt/gpuledger/bin/gpuledger", "policy", "run"]
    calls = [words[1:] for words in started.values() if words[0].endswith("/gpuledger")]
    assert [fault for each in calls if (fault := fault_of(each))] == []


def test_units_run_as_nobody_special_and_are_confined(units: dict[str, configparser.RawConfigParser]) -> None:
    for name, unit in units.items():
        service = unit["Service"]
        assert service["ProtectSystem"] == "strict", name
        assert service["NoNewPrivileges"] == "true", name
        assert "User" in service or name == "gpuledger-agent", name
        assert service.get("Type") == "oneshot" or (service["Restart"], "MemoryMax" in service) == (
            "always",
            True,
        )


def test_every_variable_is_a_setting(repository: Path) -> None:
    known = {f"GPULEDGER_{name.upper()}" for name in Settings.model_fields}
    known |= {"GPULEDGER_DAGSTER_IMAGE", "GPULEDGER_DAGSTER_NETWORK"}  # read by Dagster's own file
    files = [repository / COMPOSE, repository / "infra/Dockerfile", *(repository / "infra/systemd").iterdir()]
    text = "\n".join(path.read_text() for path in files)
    assert set(re.findall(r"\bGPULEDGER_[A-Z_]+\b", text)) - known - OF_COMPOSE - OF_UNITS == set()


@pytest.mark.parametrize("path", ["infra/Dockerfile", "infra/dagster/containers/Dockerfile"])
def test_an_image_is_pinned_made_of_what_is_here_and_not_roots(repository: Path, path: str) -> None:
    lines = (repository / path).read_text().replace("\\\n", " ").splitlines()
    steps = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    (base,) = (rest for step, rest in steps if step == "FROM")
    assert re.fullmatch(r"python:3\.\d+-slim(-\w+)?", base)
    sources = [source for step, rest in steps if step == "COPY" for source in rest.split()[:-1]]
    assert [source for source in sources if not (repository / source).exists()] == []
    assert [rest for step, rest in steps if step == "USER"][-1] not in ("root", "0")
    installs = [rest for step, rest in steps if step == "RUN" and "pip install" in rest]
    assert installs
    assert all("--require-hashes" in rest and "--only-binary :all:" in rest for rest in installs)


def _metrics_in(text: str) -> set[str]:
    return set(re.findall(r"\bgpuledger_[a-z_]+", text))


def _unknown(found: set[str]) -> set[str]:
    names = "|".join(get_args(MetricName))
    return {name for name in found if not re.fullmatch(f"(?:{names}){SUFFIXES}", name)}


def test_alerts_and_boards_ask_for_metrics_that_there_are(repository: Path) -> None:
    rules = yaml.safe_load((repository / "infra/prometheus/rules.yml").read_text())["groups"][0]["rules"]
    board = json.loads((repository / "infra/grafana/dashboards/gpuledger.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    assert len(asked) > len(board["panels"]) - 1
    found = _metrics_in(" ".join([*(rule["expr"] for rule in rules), *asked]))
    assert found
    assert _unknown(found) == set()


def test_each_panel_says_what_it_shows_and_none_covers_another(repository: Path) -> None:
    board = json.loads((repository / "infra/grafana/dashboards/gpuledger.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        assert panel["description"].endswith("."), panel["title"]
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells


def test_each_alert_is_proven_to_fire_and_names_a_command(repository: Path) -> None:
    rules = yaml.safe_load((repository / "infra/prometheus/rules.yml").read_text())["groups"][0]["rules"]
    cases = yaml.safe_load((repository / "infra/prometheus/rules_test.yml").read_text())["tests"]
    fired = {test["alertname"] for case in cases for test in case["alert_rule_test"] if test["exp_alerts"]}
    assert fired == {rule["alert"] for rule in rules}
    for rule in rules:
        words = re.sub(r"\{\{.*?\}\}", "name", rule["annotations"]["command"]).split()
        assert words[0] == "gpuledger"
        assert fault_of(words[1:]) is None


def test_alerts_fire_when_they_should_and_not_before(repository: Path) -> None:
    folder = repository / "infra/prometheus"
    for arguments in (
        ("test", "rules", "rules_test.yml"),
        ("check", "config", "--syntax-only", "prometheus.yml"),
    ):
        done = promtool.run(*arguments, folder=folder)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["docs/deployment.md", "docs/login-nodes.md"])
def test_every_command_of_the_page_exists(repository: Path, page: str) -> None:
    lines = list(lines_of((repository / page).read_text()))
    assert lines
    assert [fault for each in lines if (fault := fault_of(each))] == []
