"""The compose file says the same as the rest of the house."""

from pathlib import Path
from typing import Any

import pytest
import yaml


@pytest.fixture(scope="module", params=["infra/compose.yaml", "infra/dagster/containers/compose.yaml"])
def services(repository: Path, request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    document = yaml.safe_load((repository / request.param).read_text())
    services: dict[str, dict[str, Any]] = document["services"]
    return services


def test_it_has_services(services: dict[str, dict[str, Any]]) -> None:
    assert services


def test_every_image_is_pinned(services: dict[str, dict[str, Any]]) -> None:
    images = [service["image"] for service in services.values() if "image" in service]
    loose = [image for image in images if ":" not in image.rsplit("/", 1)[-1] or image.endswith(":latest")]
    assert loose == []


def test_ports_are_published_on_this_machine_only(services: dict[str, dict[str, Any]]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert [port for port in ports if not str(port).startswith("127.0.0.1:")] == []
