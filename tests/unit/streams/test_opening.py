import os
import subprocess
import sys
from pathlib import Path

from gpuledger.settings import Settings
from gpuledger.streams.files import FileBroker
from gpuledger.streams.kafka import KafkaBroker
from gpuledger.streams.opening import open_broker
from gpuledger.streams.topics import TELEMETRY


def test_without_an_address_streams_are_files_in_the_data_folder(tmp_path: Path) -> None:
    broker = open_broker(Settings(home=tmp_path))

    assert isinstance(broker, FileBroker)
    assert broker.path(TELEMETRY, 0) == tmp_path / "streams" / "gpu.telemetry" / "0.ndjson"


def test_with_an_address_streams_are_kafka_and_nothing_connects_yet(tmp_path: Path) -> None:
    assert isinstance(open_broker(Settings(home=tmp_path, kafka_bootstrap="127.0.0.1:1")), KafkaBroker)


def test_without_an_address_the_kafka_client_is_not_imported() -> None:
    code = (
        "import sys, pathlib; from gpuledger.settings import Settings;"
        "from gpuledger.streams.opening import open_broker; open_broker(Settings(home=pathlib.Path('x')));"
        "sys.exit('kafka' in sys.modules)"
    )
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run([sys.executable, "-c", code], check=False, env=environment)

    assert done.returncode == 0
