"""What differs between two files of a close, and in which input."""

import msgspec
import pytest
from tests.unit.close.close_said import AT, GPU_HOUR, W_HOUR, document, line

from gpuledger.close.comparing import (
    JOURNAL,
    POLICIES,
    POSTINGS,
    RECONCILIATION,
    SOURCES,
    STREAMS,
    Change,
    changes,
    differences,
    flat,
)
from gpuledger.close.document import Document

SAID = document()


def book(**keys: object) -> Document:
    other = msgspec.structs.replace(SAID.books[1], **keys)
    return msgspec.structs.replace(SAID, books=[SAID.books[0], other])


OTHERS = {
    "journal": (book(journal_digest="ff"), JOURNAL, "rows 1 to 12 of alpha"),
    "postings": (book(postings_digest="ff"), POSTINGS, "rows 1 to 12 of alpha"),
    "head": (book(head="ff"), JOURNAL, "row 12 of alpha"),
    "offsets": (msgspec.structs.replace(SAID, offsets=[]), STREAMS, "offsets"),
    "sources": (msgspec.structs.replace(SAID, sources=[]), SOURCES, "sources"),
    "policies": (msgspec.structs.replace(SAID, policies=[]), POLICIES, "policies"),
    "reconciled": (msgspec.structs.replace(SAID, reconciled=None), RECONCILIATION, "reconciled"),
    "late": (msgspec.structs.replace(SAID, late=[]), POSTINGS, "late"),
    "account": (document(line("org/speech", 50, 60, -10), line("org/vision", charged=41)), POSTINGS, "org/vision"),
    "time": (
        msgspec.structs.replace(SAID, time=msgspec.structs.replace(SAID.time, ends_at=AT)), JOURNAL, "row 12 of alpha"
    ),
}  # fmt: skip


def test_a_file_does_not_differ_from_itself() -> None:
    assert list(differences(SAID, document())) == []
    assert changes(SAID, SAID) == []


@pytest.mark.parametrize("part", OTHERS)
def test_a_part_that_differs_is_named_with_its_input(part: str) -> None:
    other, input_, place = OTHERS[part]
    found = list(differences(SAID, other))
    assert {(each.input, each.place) for each in found} == {(input_, place)}
    assert all(each.what in each.told() for each in found)


def test_amounts_that_differ_are_told_by_account_and_column() -> None:
    after = document(line("org/new", 5, 5, 0), line("org/vision", charged=41))
    found = changes(document(line("org/vision")), after)
    assert Change("org/vision", "charged_gpu_ms_weighted", 40 * W_HOUR, 41 * W_HOUR) in found
    assert Change("org/new", "allocated_gpu_ms", 0, 5 * GPU_HOUR) in found
    assert next(c for c in found if c.column == "expired_gpu_ms_weighted").difference == -W_HOUR
    assert [(c.account, c.column) for c in changes(after, document(line("org/vision")))] == [
        (c.account, c.column) for c in found
    ]


def test_what_is_nothing_is_not_told() -> None:
    assert flat(line("org/a", 5, 5, 0)) == {
        "granted_gpu_ms_weighted": 5 * W_HOUR,
        "charged_gpu_ms_weighted": 5 * W_HOUR,
        "allocated_gpu_ms": 5 * GPU_HOUR,
    }
