"""The folder that Dagster keeps its runs in."""

import os
from pathlib import Path

VARIABLE = "DAGSTER_HOME"

_CONFIG = """\
# Written by gpuledger because the file was missing; yours to change.
telemetry:
  enabled: false
nux:
  enabled: false
event_log_storage:
  module: gpuledger_pipelines.event_log
  class: BatchingSqliteEventLogStorage
  config: {}
python_logs:
  managed_python_loggers: [gpuledger_pipelines.progress]
  python_log_level: INFO
"""


def prepare(home: Path) -> Path:
    """Make the folder and its ``dagster.yaml`` where they are missing, and point Dagster to it."""
    home = home.expanduser().resolve()
    home.mkdir(parents=True, exist_ok=True)
    config = home / "dagster.yaml"
    if not config.exists():
        config.write_text(_CONFIG)
    os.environ[VARIABLE] = str(home)
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    return home
