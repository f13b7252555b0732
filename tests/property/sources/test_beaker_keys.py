"""A job of Beaker whose keys are all spelt as usual is read in one go, and says what it says key by key."""

import random
from pathlib import Path

import msgspec
import pytest
from tests.property.sources.mutations import mutated
from tests.property.sources.seeds import SEEDS

from gpuledger.kernel.errors import BadRecord
from gpuledger.sources import beaker
from gpuledger.sources.protocol import ImportOptions

RECORDS = {"short": 2_000, "full": 100_000}
(SEED,) = (seed for seed in SEEDS if seed.source == "beaker")


class NoDecoder:
    """Reads nothing in one go."""

    def decode(self, raw: bytes) -> object:
        raise msgspec.DecodeError


def outcome(raw: bytes) -> object:
    try:
        return beaker._Jobs(ImportOptions()).job(raw)
    except BadRecord as error:
        return error.code, error.message, error.hint


def respelt(record: bytes, chance: random.Random) -> bytes:
    """Return the record, with one key in the words of the protocol now and then, or in no spelling at all."""
    if chance.random() < 0.5:
        return record
    was, *spelt = chance.choice(
        (
            (b'"taskId"', b'"task_id"', b'"TaskId"', b'"TASK_ID"', b'"taskid"'),
            (b'"exitCode"', b'"exit_code"', b'"ExitCode"', b'"exit_Code"'),
            (b'"gpuCount"', b'"gpu_count"', b'"GPUCount"', b'"gpuCount":1,"gpu_count"'),
            (b'"assignmentDetails"', b'"assignment_details"', b'"assignmentDetails":{},"assignment_details"'),
            (b'"name"', b'"budget_id"', b'"budgetId"', b'"unheardOf"', b'"nam\\u0065"'),
        )
    )
    return record.replace(was, chance.choice(spelt))


def test_a_job_says_the_same_in_one_go_and_key_by_key(
    tmp_path: Path, test_form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(4)
    at_once = 0
    for _ in range(RECORDS[test_form]):
        record = respelt(chance.choice(SEED.sample), chance)
        if chance.random() < 0.6:
            record = mutated(record, SEED.sample, chance)
        found = outcome(record)
        try:
            beaker._decoder.decode(record)
            at_once += 1
        except (msgspec.DecodeError, UnicodeError):
            pass
        with monkeypatch.context() as patch:
            patch.setattr(beaker, "_decoder", NoDecoder())
            assert found == outcome(record)
    assert RECORDS[test_form] // 4 < at_once < RECORDS[test_form] * 3 // 4
