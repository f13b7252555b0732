"""Which devices are in trouble follows from observations and table alone, in whatever order they come."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuledger.events.budget import Repeated, XidTable
from gpuledger.events.host import HealthKind, HealthObserved
from gpuledger.ledger.health import (
    STARTING_TABLE,
    Change,
    Observation,
    Tables,
    Trouble,
    Version,
    changes,
    troubles,
)

DAY_S = 86_400
NOW = Tables()


def seen(
    at_s: int,
    kind: HealthKind = "xid",
    code: int | None = None,
    *,
    uuid: str | None = "GPU-1",
    pci: str | None = None,
) -> Observation:
    return Observation(
        at_s, HealthObserved(cluster="c", host="n1", kind=kind, gpu_uuid=uuid, pci=pci, code=code)
    )


def brief(found: list[Trouble]) -> list[tuple[str, str, str, int, int | None]]:
    return [(t.device, t.state, t.reason, t.from_s, t.to_s) for t in found]


@pytest.mark.parametrize(
    ("code", "state"),
    [
        *[(code, "unhealthy") for code in (48, 64, 79, 95, 119, 120, 140, 143)],
        *[(code, "draining") for code in (63, 94)],
        *[(code, None) for code in (13, 31, 43, 45, 68, 109, 74, 150)],
    ],
)
def test_what_each_xid_of_the_starting_table_means(code: int, state: str | None) -> None:
    found = troubles([seen(100, code=code)], NOW)
    assert brief(found) == ([] if state is None else [("GPU-1", state, f"xid-{code}", 100, None)])


@pytest.mark.parametrize(
    ("kind", "state"), [("remap_failed", "unhealthy"), ("remap_pending", "draining"), ("lost", "unhealthy")]
)
def test_what_else_is_observed(kind: HealthKind, state: str) -> None:
    assert [(t.state, t.reason) for t in troubles([seen(1, kind)], NOW)] == [(state, kind.replace("_", "-"))]


def test_trouble_begins_at_the_first_evidence_and_ends_at_the_first_clean_check() -> None:
    history = [
        seen(100, code=79),
        seen(150, code=79),
        seen(300, "clean"),
        seen(400, "clean"),
        seen(500, code=48),
    ]
    assert brief(troubles(history, NOW)) == [
        ("GPU-1", "unhealthy", "xid-79", 100, 300),
        ("GPU-1", "unhealthy", "xid-48", 500, None),
    ]


def test_xid_74_twice_in_a_day_is_trouble_from_the_first_and_noticed_at_the_second() -> None:
    (trouble,) = troubles([seen(100, code=74), seen(100 + DAY_S - 1, code=74)], NOW)
    assert (trouble.reason, trouble.from_s, trouble.noticed_s) == ("xid-74-repeated", 100, 100 + DAY_S - 1)


@pytest.mark.parametrize(
    "history",
    [
        [seen(100, code=74), seen(100 + DAY_S, code=74)],
        [seen(100, code=74), seen(100, code=74)],
        [seen(100, code=74), seen(200, "clean"), seen(300, code=74)],
        [seen(100, code=74), seen(200, code=74, uuid="GPU-2")],
    ],
    ids=["a day apart", "two logs of one error", "clean between", "two devices"],
)
def test_what_is_not_twice_in_a_day(history: list[Observation]) -> None:
    assert troubles(history, NOW) == []


def test_a_log_that_knows_the_place_speaks_of_the_device_that_sits_there() -> None:
    history = [
        seen(50, "clean", uuid="GPU-1", pci="P"),
        seen(100, code=79, uuid=None, pci="P"),
        seen(200, "clean", uuid="GPU-2", pci="P"),
        seen(300, code=48, uuid=None, pci="P"),
        seen(300, code=48, uuid=None, pci="Q"),
    ]
    assert brief(troubles(history, NOW)) == [
        ("GPU-1", "unhealthy", "xid-79", 100, 200),
        ("GPU-2", "unhealthy", "xid-48", 300, None),
        ("Q", "unhealthy", "xid-48", 300, None),
    ]


def test_a_place_is_named_by_what_is_seen_there_later() -> None:
    history = [seen(100, code=79, uuid=None, pci="P"), seen(200, "clean", uuid="GPU-1", pci="P")]
    assert brief(troubles(history, NOW)) == [("GPU-1", "unhealthy", "xid-79", 100, 200)]


def test_a_clean_host_has_no_device_in_trouble() -> None:
    history = [seen(100, code=79), seen(100, code=48, uuid="GPU-2"), seen(300, "clean", uuid=None)]
    assert [t.to_s for t in troubles(history, NOW)] == [300, 300]


def test_the_same_evidence_under_another_table_is_another_month() -> None:
    lenient = msgspec.structs.replace(STARTING_TABLE, unhealthy=[], draining=[79], lost="healthy")
    history = [seen(100, code=79), seen(200, "lost"), seen(900, "clean")]
    assert brief(troubles(history, Tables([Version(0, 1, lenient)]))) == [
        ("GPU-1", "draining", "xid-79", 100, 900)
    ]
    dated = Tables([Version(150, 7, lenient), Version(150, 3, STARTING_TABLE)])
    assert brief(troubles(history, dated)) == [("GPU-1", "unhealthy", "xid-79", 100, 900)]
    assert dated.at(149) == STARTING_TABLE
    assert dated.at(150) == lenient


def test_a_host_is_as_bad_as_its_worst_device() -> None:
    found = changes(
        troubles(
            [
                seen(100, code=63),
                seen(200, code=79, uuid="GPU-2"),
                seen(300, "clean", uuid="GPU-2"),
                seen(400, "clean"),
                seen(500, code=74),
                seen(600, code=74),
            ],
            NOW,
        )
    )
    assert found == {
        "n1": [
            Change(100, "draining", "xid-63", ("GPU-1",), 100),
            Change(200, "unhealthy", "xid-79", ("GPU-2",), 200),
            Change(300, "draining", "xid-63", ("GPU-1",), 300),
            Change(400, "healthy", "", (), 400),
            Change(500, "unhealthy", "xid-74-repeated", ("GPU-1",), 600),
        ]
    }


KINDS: list[HealthKind] = ["xid", "remap_pending", "remap_failed", "lost", "clean"]


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    kind = draw(st.sampled_from(KINDS))
    uuid, pci = draw(
        st.sampled_from([("GPU-1", None), ("GPU-1", "P"), (None, "P"), ("GPU-2", "P"), ("GPU-2", None)])
    )
    code = draw(st.sampled_from([13, 48, 63, 74, 79, 500])) if kind == "xid" else None
    return seen(draw(st.integers(0, 20)) * 7200, kind, code, uuid=uuid, pci=pci)


tables = st.lists(
    st.builds(
        Version,
        st.sampled_from([0, 20_000, 90_000]),
        st.integers(1, 5),
        st.sampled_from(
            [
                STARTING_TABLE,
                XidTable(
                    unhealthy=[63],
                    draining=[48],
                    application=[],
                    repeated={79: Repeated(times=3, within_s=50_000)},
                    remap_failed="draining",
                    remap_pending="healthy",
                    lost="unhealthy",
                ),
            ]
        ),
    ),
    max_size=2,
    unique_by=lambda v: v.org_seq,
).map(Tables)


@given(st.lists(observations(), max_size=12), tables, st.randoms(use_true_random=False))
def test_order_and_repetition_of_observations_change_nothing(
    history: list[Observation], table: Tables, rng: object
) -> None:
    found = troubles(history, table)
    shuffled = [*history, *history[:3]]
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert troubles(shuffled, table) == found
    for trouble in found:
        assert trouble.from_s <= trouble.noticed_s
        assert trouble.to_s is None or trouble.to_s >= trouble.noticed_s
    for told in changes(found).values():
        assert [change.at_s for change in told] == sorted({change.at_s for change in told})
        assert all(bool(change.devices) == (change.state != "healthy") for change in told)
