"""What was found: the first broken link is the one to begin with."""

from gpuledger.doctor.findings import Finding, Level, fine, first_broken, is_broken

NOTE = Finding("sources", Level.NOTE, "none")
WRONG = Finding("schema", Level.WRONG, "old", command="gpuledger db upgrade", cluster="alpha")


def test_only_what_is_wrong_is_broken() -> None:
    assert not is_broken([fine("disk", "room"), NOTE])
    assert first_broken([NOTE]) is None
    later = Finding("roll-up", Level.WRONG, "nothing")
    assert is_broken([NOTE, WRONG, later])
    assert first_broken([NOTE, WRONG, later]) is WRONG


def test_programs_get_every_key() -> None:
    assert WRONG.as_json() == {
        "link": "schema", "cluster": "alpha", "level": "wrong", "what": "old", "remedy": "",
        "command": "gpuledger db upgrade",
    }  # fmt: skip
