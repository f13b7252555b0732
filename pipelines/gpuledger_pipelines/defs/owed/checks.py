"""Gates behind owed."""

from gpuledger_pipelines.declaring import HOURS, gate
from gpuledger_pipelines.defs.owed.assets import owed_hour
from gpuledger_pipelines.expectations import owed as expect

owed_hour_suite = gate(owed_hour, key=expect.KEY, where=HOURS, expect=expect.owed_hour)

CHECKS = (owed_hour_suite,)
