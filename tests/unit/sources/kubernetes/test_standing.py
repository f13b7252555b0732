import json

import pytest
from tests.unit.sources.kubernetes.building import CREATED

from gpuledger.sources.kubernetes import standing as module
from gpuledger.sources.kubernetes.objects import Meta, Owner
from gpuledger.sources.kubernetes.reading import decode
from gpuledger.sources.kubernetes.standing import Standing

BEGAN = 1_793_476_800


def of(kind: str, name: str, uid: str) -> Meta:
    return Meta(namespace="ns", owner_references=[Owner(kind=kind, name=name, uid=uid)])


def pod(uid: str = "p", **labels: str) -> Meta:
    raw = {"namespace": "ns", "uid": uid, "creationTimestamp": CREATED, "labels": labels}
    return decode(Meta, json.dumps(raw).encode())


def owned(uid: str) -> Meta:
    return Meta(namespace="ns", uid="p", owner_references=[Owner(kind="Job", name="j", uid=uid)])


def test_a_job_stands_as_long_as_its_workload_is_there_and_for_a_while_after() -> None:
    known = Standing()
    known.stand("w", of("Job", "j", "u"))
    assert known.workload(owned("u")) == "w"
    known.leave("w", BEGAN)
    known.leave("w", BEGAN + 5)
    assert known.workload(owned("u")) == "w"
    assert known.workload(owned("other")) is None


def test_those_that_went_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a collector runs: what is there, and so many that are not."""
    monkeypatch.setattr(module, "GONE_MAX", 10)
    known = Standing()
    known.stand("there", of("Job", "j", "there"))
    for number in range(1000):
        known.stand(f"w{number}", of("JobSet", f"j{number}", f"u{number}"))
        known.leave(f"w{number}", BEGAN)
    assert len(known) == 11
    assert len(known._jobs) == 1 + 2 * 10
    assert (known.workload(owned("u989")), known.workload(owned("u990"))) == (None, "w990")
    assert known.workload(owned("there")) == "there"


def test_a_workload_that_owns_nobody_is_not_remembered() -> None:
    known = Standing()
    known.stand("w", Meta(namespace="ns"))
    known.leave("w", BEGAN)
    assert len(known) == 0
    assert known.kept() == {}


def test_a_name_that_is_given_again_is_another_job() -> None:
    known = Standing()
    known.stand("w", of("RayCluster", "llm", "u"))
    labelled = {"ray.io/cluster": "llm"}
    known.leave("w", BEGAN)
    assert known.workload(pod(**labelled)) == "w", "it was there when the pod was made"
    known = Standing()
    known.stand("w", of("RayCluster", "llm", "u"))
    known.leave("w", BEGAN - 1)
    assert known.workload(pod(**labelled)) is None
    known.stand("w2", of("RayCluster", "llm", "u2"))
    known.leave("w", BEGAN)
    assert known.workload(pod(**labelled)) == "w2"


def test_one_that_went_late_does_not_take_the_name_of_the_next() -> None:
    known = Standing()
    known.stand("w", of("RayCluster", "llm", "u"))
    known.stand("w2", of("RayCluster", "llm", "u2"))
    known.leave("w", BEGAN - 100)
    assert known.workload(pod(**{"ray.io/cluster": "llm"})) == "w2"
    assert known.workload(owned("u")) == "w"


def test_after_a_list_all_others_are_gone() -> None:
    known = Standing()
    for workload in ("a", "b"):
        known.stand(workload, of("Job", workload, workload))
    known.only({"a"}, BEGAN)
    assert {key: gone for key, (_, gone) in known.kept().items()} == {"a": None, "b": BEGAN}


def test_what_is_kept_is_known_again_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GONE_MAX", 3)
    known = Standing()
    for number in range(6):
        known.stand(f"w{number}", of("JobSet", f"j{number}", f"u{number}"))
    for number in (4, 1, 3):
        known.leave(f"w{number}", BEGAN + number)
    again = Standing()
    again.restore(json.loads(json.dumps(known.kept())))
    assert again.kept() == known.kept()
    again.leave("w0", BEGAN)
    assert again.workload(owned("u4")) is None, "it went first"
    assert again.workload(owned("u1")) == "w1"
