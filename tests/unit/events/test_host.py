"""An observation of health says of which device, and which error."""

import pytest

from gpuledger.events.envelope import decode_data
from gpuledger.events.host import HealthObserved


@pytest.mark.parametrize(
    "keys",
    [
        '"kind":"xid","code":79,"gpu_uuid":"GPU-1"',
        '"kind":"xid","code":79,"pci":"00000000:9B:00.0"',
        '"kind":"remap_failed","gpu_uuid":"GPU-1"',
        '"kind":"lost","pci":"00000000:9B:00.0"',
        '"kind":"clean"',
    ],
)
def test_what_an_observation_may_say(keys: str) -> None:
    assert isinstance(decode_data("health.observed", f'{{"cluster":"c","host":"n1",{keys}}}'), HealthObserved)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('"kind":"xid","gpu_uuid":"GPU-1"', "code stands with kind xid"),
        ('"kind":"clean","code":79', "code stands with kind xid"),
        ('"kind":"lost"', "which device"),
        ('"kind":"hot","gpu_uuid":"GPU-1"', "kind"),
    ],
)
def test_what_it_may_not(keys: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        decode_data("health.observed", f'{{"cluster":"c","host":"n1",{keys}}}')
