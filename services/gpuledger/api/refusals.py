"""Who was refused what: one line of JSON in the log for each."""

import json
import logging

from fastapi import Request

from gpuledger.kernel.clock import SystemClock, iso

LOG = logging.getLogger("gpuledger.api.refusals")


def log(request: Request, why: str) -> None:
    """Log who was refused what, as one line of JSON; what they sent is not repeated, for it may be a secret."""
    caller = getattr(request.state, "caller", None)
    told = {
        "event": "refused",
        "at": iso(SystemClock().now()),
        "method": request.method,
        "path": request.url.path,
        "from": request.client.host if request.client else None,
        "token": caller.token if caller else None,
        "name": caller.name if caller else None,
        "role": caller.role if caller else None,
        "why": why,
    }
    LOG.warning("%s", json.dumps(told))
