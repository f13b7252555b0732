"""A small scenario for commands that simulate: over in a moment, and busy enough for something to wait."""

from pathlib import Path

SCENARIO = """
name: small
cluster: {hosts: 2, gpus_per_host: 8, model: h100}
start: 2026-01-05
days: 1
warm_up_days: 0
seed: 5
accounts:
  org/a: {share: 3}
  org/b: {share: 1}
demand:
  jobs:
    - {job: long, account: org/a, gpus: 16, at_s: 600, work_s: 20000, minimum_runtime_s: 3600, time_limit_s: 30000}
    - {job: small, account: org/b, count: 60, every_s: 900, gpus: 4, work_s: 5000, time_limit_s: 7200}
    - {job: debug, account: org/a, kind: debug, count: 20, every_s: 1800, gpus: 1, work_s: 300, minimum_runtime_s: 300}
"""

BUDGET = """
accounts:
  org/b: {share: 9}
"""


def scenario(folder: Path) -> Path:
    """Write the scenario into a folder and return its path."""
    return _written(folder / "small.yaml", SCENARIO)


def budget(folder: Path) -> Path:
    """Write a budget that turns the shares of the scenario round and return its path."""
    return _written(folder / "proposed.yaml", BUDGET)


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
