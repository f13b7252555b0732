"""Trying again, in a bounded number of attempts, and without a word on stdout, which belongs to the answer.

Wherever structlog happens to be installed stamina would tell of each attempt there; so it is imported here alone.
"""

import stamina

stamina.instrumentation.set_on_retry_hooks(())

retry_context = stamina.retry_context
"""The loop of attempts, as stamina documents it."""

__all__ = ["retry_context"]
