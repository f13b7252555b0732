"""How senders say that a notice did not arrive."""

from gpuledger.kernel.errors import Unavailable
from gpuledger.notify.sending import Undelivered


def test_what_did_not_arrive_is_tried_again_unless_it_is_final() -> None:
    error = Undelivered("answers 500")
    assert isinstance(error, Unavailable)
    assert (error.message, error.is_final, bool(error.hint)) == ("answers 500", False, True)
    assert Undelivered("gone", is_final=True).is_final
