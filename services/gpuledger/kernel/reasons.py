"""Why a record could not be read: the one list of codes, each with the sentence that explains it.

Sources, streams and ingest raise ``BadRecord`` with one of these codes; a message beside it says which field and
value. A code is for ever: dead letters keep it, and alerts are written for it. A new one is a line here and in
docs/dead-letters.md.
"""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "bad-csv": "The line is no row of comma-separated values: a quote is open, or a field is too long.",
    "bad-device": "A GPU is named that cannot be one of the job's.",
    "bad-field": "A field is missing, of the wrong type, or holds a value that no book could be settled with.",
    "bad-interval": "A sample speaks for a longer time than anything is sampled at.",
    "bad-name": "A name is too long, or holds a character that cannot be printed.",
    "bad-options": "What was said at the import, such as the time zone, cannot be used any more.",
    "corrupt-gzip": "The compressed file is damaged; nothing behind this place could be read.",
    "end-before-start": "Something ends before it begins.",
    "event-too-large": "The event has more bytes than any event needs.",
    "line-too-long": "The line is longer than any record: a line end is probably missing.",
    "missing-value": "A field that is needed is empty.",
    "naive-time": "A time has no zone, and none is guessed.",
    "no-context": "The letter does not say where its record came from, so that it cannot be read again.",
    "not-a-number": "A field that holds a number holds something else.",
    "not-a-time": "A field that holds a time holds something else.",
    "not-an-event": "The value is no CloudEvent in structured JSON.",
    "not-utf8": "The bytes are no text in UTF-8.",
    "nul-byte": "The line holds a zero byte, which no text has.",
    "null-character": "A string holds the character U+0000, which the database cannot keep.",
    "out-of-bounds": "A number is outside what is possible.",
    "own-type": "The event is of a type that only the ledger itself writes.",
    "partial-line": "Only the beginning of the record could be read.",
    "reserved-name": "A name is used that the ledger keeps for itself.",
    "time-out-of-range": "A time is outside the years 1970 to 2100: the clock or the unit is wrong.",
    "truncated-gzip": "The compressed file ends too early; nothing behind this place could be read.",
    "unknown-type": "The event is of a type that this version does not know.",
    "unknown-version": "The envelope is of a version of CloudEvents that is not 1.0.",
    "unreadable": "The file could not be read further from this place on.",
    "wrong-columns": "The row has more or fewer fields than the header names.",
}


def sentence_of(code: str) -> str:
    """Return what a code means; a code of another version explains itself only in the reason beside it."""
    return REASONS.get(code, "This version does not know the code; the reason says what was wrong.")
