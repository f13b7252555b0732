"""A name that is not known is answered with those that are like it."""

from gpuledger.kernel.near import did_you_mean

KNOWN = ("accounts", "account", "clusters")


def test_the_likest_are_named_first_and_no_more_than_wanted() -> None:
    assert did_you_mean("acount", KNOWN, "there are three") == "did you mean account?"
    assert did_you_mean("acount", KNOWN, "there are three", most=3) == "did you mean account, accounts?"


def test_what_is_like_none_hears_something_else() -> None:
    assert did_you_mean("zzz", KNOWN, "there are three") == "there are three"


def test_how_alike_they_have_to_be_can_be_said() -> None:
    assert did_you_mean("colour", ("cluster",), "there is one") == "did you mean cluster?"
    assert did_you_mean("colour", ("cluster",), "there is one", likeness=0.7) == "there is one"
