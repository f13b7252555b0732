"""Why a record could not be read: the one list of codes, each with the sentence that explains it.

Sources, streams and ingest raise ``BadRecord`` with one of these codes; a message beside it says which field and
value. A code is for ever: dead letters keep it, and alerts are written for it. A new one is a line here and in
docs/dead-letters.md.
"""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "amount-too-large": "An amount that follows, or the sum that it becomes part of, is larger than the ledger holds.",
    "bad-array": "A list of array tasks is written as none is.",
    "bad-csv": "The line is no row of comma-separated values: a quote is open, or a field is too long.",
    "bad-device": "A GPU is named that cannot be one of the job's.",
    "bad-exposition": "A line is no metric of the Prometheus text format.",
    "bad-field": "A field is missing, of the wrong type, or holds a value that no book could be settled with.",
    "bad-hosts": "A list of hosts cannot be expanded.",
    "bad-interval": "A sample speaks for a longer time than anything is sampled at.",
    "bad-job-id": "A job's number is written as Slurm writes none.",
    "bad-json": "The record is no JSON.",
    "bad-name": "A name is too long, or holds a character that cannot be printed.",
    "bad-options": "What was said at the import, such as the time zone, cannot be used any more.",
    "bad-shape": "The record is JSON of another shape than any version's that is known.",
    "bad-xid": "A line speaks of an XID without saying which, or on which device.",
    "bad-xml": "The XML is damaged, or of no kind that is known.",
    "bad-yaml": "The object holds what the API of Kubernetes never writes.",
    "clipped-times": "Start or end were cut to the window of a report.",
    "column-twice": "The header names a column twice with two values.",
    "corrupt-gzip": "The compressed file is damaged; nothing behind this place could be read.",
    "end-before-start": "Something ends before it begins.",
    "event-too-large": "The event has more bytes than any event needs.",
    "fragment": "The record is a part of an object: its kind is missing.",
    "key-twice": "A key stands twice in one record: a job's name may have forged it.",
    "line-too-long": "The line is longer than any record: a line end is probably missing.",
    "missing-value": "A field that is needed is empty.",
    "naive-time": "A time has no zone, and none is guessed.",
    "no-boot-time": "A time counts from the start of the host, which is not known.",
    "no-context": "The letter does not say where its record came from, so that it cannot be read again.",
    "no-host": "Nothing names the host.",
    "no-time": "Nothing says when this was so.",
    "no-zone": "A time is local to a place that is not named.",
    "not-a-number": "A field that holds a number holds something else.",
    "not-a-time": "A field that holds a time holds something else.",
    "not-an-event": "The value is no CloudEvent in structured JSON.",
    "not-an-object": "The line is no JSON object.",
    "not-utf8": "The bytes are no text in UTF-8.",
    "nul-byte": "The line holds a zero byte, which no text has.",
    "null-character": "A string holds the character U+0000, which the database cannot keep.",
    "out-of-bounds": "A number is outside what is possible.",
    "out-of-order": "A row stands before rows that are earlier.",
    "own-type": "The event is of a type that only the ledger itself writes.",
    "partial-line": "Only the beginning of the record could be read.",
    "record-too-long": "The record has more bytes than any record needs: its end is probably missing.",
    "reserved-name": "A name is used that the ledger keeps for itself.",
    "same-second": "Two readings of one device are of the same second.",
    "settings-contradict": "Settings of the policy would not go together with those that are in force.",
    "several-clusters": "Records of several clusters cannot all be of the one that was named.",
    "shared-devices": "The node tells slices, and not how many devices they are parts of.",
    "time-out-of-range": "A time is outside the years 1970 to 2100: the clock or the unit is wrong.",
    "truncated-gzip": "The compressed file ends too early; nothing behind this place could be read.",
    "unknown-claim": "A pod holds devices of a claim, and what the claim was given was not seen.",
    "unknown-fraction": "A part of a GPU is held whose size is not known.",
    "unknown-job": "The row belongs to a job that no other row tells of.",
    "unknown-kind": "Objects of this kind say nothing about GPUs.",
    "unknown-profile": "A profile of MIG is not in the table.",
    "unknown-share": "A part of a device is asked for whose size nothing tells.",
    "unknown-state": "A state is not known, so that nothing follows from it.",
    "unknown-task": "The row belongs to a task that no other row tells of.",
    "unknown-type": "The event is of a type that this version does not know.",
    "unknown-value": "A value that is needed is marked as unknown.",
    "unknown-version": "The envelope is of a version of CloudEvents that is not 1.0.",
    "unknown-xid": "The number is no XID that a driver reports.",
    "unreadable": "The file could not be read further from this place on.",
    "watch-error": "The watch of the API broke off; what happened until the next state is not in the stream.",
    "wrong-columns": "The row has more or fewer fields than the header names.",
    "zone-in-use": "Another zone would move days to which facts are booked.",
}


def sentence_of(code: str) -> str:
    """Return what a code means; a code of another version explains itself only in the reason beside it."""
    return REASONS.get(code, "This version does not know the code; the reason says what was wrong.")
