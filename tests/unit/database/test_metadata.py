"""Instants go in and come out aware and in UTC."""

import datetime as dt

import pytest

from gpuledger.database.metadata import METADATA, Instant

NOON = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
BERLIN = NOON.astimezone(dt.timezone(dt.timedelta(hours=1)))


def test_an_instant_of_any_zone_is_bound_in_utc() -> None:
    bound = Instant().process_bind_param(BERLIN, None)
    assert bound is not None
    assert (bound, bound.tzinfo) == (NOON, dt.UTC)


def test_a_naive_instant_is_refused() -> None:
    with pytest.raises(ValueError, match="no zone"):
        Instant().process_bind_param(NOON.replace(tzinfo=None), None)


def test_a_stored_instant_comes_out_in_utc() -> None:
    read = Instant().process_result_value(BERLIN, None)
    assert read is not None
    assert (read, read.tzinfo) == (NOON, dt.UTC)


def test_no_instant_stays_none() -> None:
    assert Instant().process_bind_param(None, None) is Instant().process_result_value(None, None) is None


def test_constraints_have_names_that_migrations_can_speak_of() -> None:
    assert {"pk", "uq", "ix", "ck", "fk"} <= set(METADATA.naming_convention)
