"""A handle follows from what a sampler sees of a run; its forms never meet."""

from hypothesis import given
from hypothesis import strategies as st

from gpuledger.kernel.handles import pod_name, pod_uid, slurm_job

labels = st.text(st.sampled_from("ab0-"), min_size=1)


def test_a_handle_says_what_it_is_of() -> None:
    assert slurm_job("8841_7") == "job/8841_7"
    assert pod_uid("6f1c") == "pod/6f1c"
    assert pod_name("vision", "train-0") == "pod/vision/train-0"


@given(labels, labels, labels, labels)
def test_two_pods_have_two_handles(namespace: str, pod: str, other_namespace: str, other_pod: str) -> None:
    is_same = (namespace, pod) == (other_namespace, other_pod)
    assert (pod_name(namespace, pod) == pod_name(other_namespace, other_pod)) == is_same
    assert pod_name(namespace, pod) != pod_uid(other_pod)
