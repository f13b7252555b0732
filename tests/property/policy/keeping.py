"""From whom hosts may be kept, as the laws of a cycle see it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.property.policy.simulation import Job, World


def is_kept_out(world: "World", job: "Job") -> bool:
    """Say whether hosts may be kept from unallocated work: other such work has waited for so long."""
    after_s = world.config.unallocated_keeps_after_s

    def is_funded(one: "Job") -> bool:
        return one.minimum_s > 0 and world.shares.get(one.account, 0) > 0

    return (
        after_s > 0
        and not is_funded(job)
        and any(
            world.at_s - one.eligible_s >= after_s and one is not job and not is_funded(one)
            for one in world.waiting()
        )
    )
