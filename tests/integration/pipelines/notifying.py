"""Settings of pipelines that tell a webhook on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.integration.notify.receiving import Receiver, receiver, write_recipients

from gpuledger import settings


@contextmanager
def told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """Have ``GPULEDGER_NOTIFICATIONS`` name a receiver until the block ends."""
    with receiver() as there:
        monkeypatch.setenv("GPULEDGER_NOTIFICATIONS", str(write_recipients(folder, there.url)))
        settings.load.cache_clear()
        yield there
    settings.load.cache_clear()
