"""The file of recipients: read strictly, without telling secrets, and who of it wants what."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.notify.notices import Kind
from gpuledger.notify.recipients import Mail, Recipients, Subscription, load_recipients
from gpuledger.settings import Settings

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef" * 2).decode()
FILE = """
webhooks:
  chat: {url: "https://hooks.example.org/very-secret", secret_file: chat.secret}
mails:
  vision:
    to: [lead@example.org, deputy@example.org]
    account: org/vision
    quiet: {from: "20:00", to: "07:00"}
"""

Load = Callable[..., Recipients]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def once(text: str = FILE, secret: str = SECRET, smtp_host: str | None = "mail") -> Recipients:
        (tmp_path / "chat.secret").write_text(secret)
        (tmp_path / "recipients.yaml").write_text(text)
        found = load_recipients(
            Settings(
                notifications=tmp_path / "recipients.yaml",
                smtp_host=smtp_host,
                smtp_from=smtp_host and "gpuledger@example.org",
            )
        )
        assert found is not None
        return found

    return once


def test_without_a_file_nobody_is_told_anything() -> None:
    assert load_recipients(Settings()) is None


def test_each_address_is_a_target_of_its_own_and_stands_in_no_name(load: Load) -> None:
    found = load()
    assert [each.name.rpartition("/")[0] or each.name for each in found.targets] == [
        "webhook", "mail/vision", "mail/vision",
    ]  # fmt: skip
    assert [each.address for each in found.targets] == [None, "lead@example.org", "deputy@example.org"]
    assert len({each.name for each in found.targets}) == 3
    assert not any("@" in each.name for each in found.targets)
    assert found.thresholds == (50, 80, 100)


def test_thresholds_are_the_files(load: Load) -> None:
    assert load(FILE + "thresholds: [90, 75, 90]\n").thresholds == (75, 90)


def test_secrets_and_urls_are_in_no_repr(load: Load) -> None:
    assert "very-secret" not in repr(load())
    assert SECRET[6:] not in repr(load())


def test_two_secrets_are_two_signatures(load: Load) -> None:
    assert len(load(secret=f"{SECRET}\n{SECRET}\n").targets[0].secrets) == 2


@pytest.mark.parametrize(
    "secret",
    ["", "\n", "hunter2", "whsec_", "whsec_hunter2", "whsec_" + base64.b64encode(b"x" * 23).decode(),
     "whsec_" + base64.b64encode(b"x" * 65).decode(), f"{SECRET}\nhunter2", "whsec_ü"],
)  # fmt: skip
def test_what_is_no_secret_is_refused_and_not_repeated(load: Load, secret: str) -> None:
    with pytest.raises(Refused, match=r"webhooks\.chat\.secret_file") as refused:
        load(secret=secret)
    assert "hunter2" not in refused.value.message
    assert "docs/notifications.md" in refused.value.hint


def test_a_secret_file_that_is_missing_is_named(load: Load, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"webhooks\.chat\.secret_file: cannot be read: FileNotFoundError"):
        load(FILE.replace("chat.secret", "other.secret"))


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(NotFound, match="no such file"):
        load_recipients(Settings(notifications=Path("nowhere.yaml")))


def test_mail_needs_a_server(load: Load) -> None:
    with pytest.raises(Refused, match="no server is set") as refused:
        load(smtp_host=None)
    assert "GPULEDGER_SMTP_HOST" in refused.value.hint


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("https://hooks", "http://hooks", "https"),
        ("account: org/vision", "account: Org/Vision", "not well formed"),
        ("account: org/vision", "acount: org/vision", "account"),
        ('"20:00"', '"25:00"', "time of day"),
        ('"20:00"', '"20"', "time of day"),
        ("[lead@example.org, deputy@example.org]", "[]", "at least 1"),
        ("  chat:", "  Chat/x:", "pattern"),
        ("quiet:", "notices: [budget.thresholds]\n    quiet:", "budget.threshold"),
        ("mails:", "thresholds: [0]\nmails:", "greater than"),
        ("mails:", "thresholds: [true]\nmails:", "no numbers"),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(load: Load, old: str, new: str, told: str) -> None:
    assert old in FILE
    with pytest.raises(Refused, match=r"recipients\.yaml") as refused:
        load(FILE.replace(old, new))
    assert told in refused.value.message
    assert "very-secret" not in refused.value.message


@pytest.mark.parametrize(
    "address",
    ["nobody", "@example.org", "a@", "a b@example.org", "a@example.org\\nBcc: x@example.org",
     "a@example.org, b@example.org", "Ada <a@example.org>", "ä@example.org", "a;b@example.org",
     '\\"a\\"@example.org'],
)  # fmt: skip
def test_what_is_no_single_address_is_refused(load: Load, address: str) -> None:
    with pytest.raises(Refused, match="mail address"):
        load(FILE.replace("lead@example.org", f'"{address}"'))


@pytest.mark.parametrize(
    ("kind", "cluster", "account", "of_all", "of_vision", "of_node"),
    [
        (Kind.BUDGET_THRESHOLD, "alpha", "org", True, False, False),
        (Kind.BUDGET_THRESHOLD, "alpha", "org/vision", True, True, True),
        (Kind.BUDGET_OVERRUN, "alpha", "org/vision/~own", True, True, False),
        (Kind.BUDGET_THRESHOLD, "alpha", "org/vision2", True, False, False),
        (Kind.BUDGET_THRESHOLD, "beta", "org/vision", False, False, False),
        (Kind.CHECK_FAILED, "alpha", None, True, False, False),
        (Kind.CLOSE_SEALED, "alpha", None, True, True, True),
        (Kind.CLOSE_FAILED, "alpha", None, True, False, False),
        (Kind.CLOSE_SEALED, "beta", None, False, False, False),
    ],
)
def test_each_is_told_what_they_answer_for(
    kind: Kind, cluster: str, account: str | None, *, of_all: bool, of_vision: bool, of_node: bool
) -> None:
    accounts = () if account is None else (account,)
    whole, vision = Subscription(clusters=("alpha",)), Subscription(account="org/vision", clusters=("alpha",))
    node = Subscription(account="org/vision", below=False, clusters=("alpha",))
    assert [each.wants(kind, cluster, accounts) for each in (whole, vision, node)] == [
        of_all,
        of_vision,
        of_node,
    ]


def test_nobody_is_told_what_they_did_not_ask_for() -> None:
    closes = Subscription(notices=(Kind.CLOSE_SEALED,))
    assert closes.wants(Kind.CLOSE_SEALED, "alpha", ())
    assert not closes.wants(Kind.BUDGET_THRESHOLD, "alpha", ("org",))


def test_who_wants_a_notice_is_asked_by_name(load: Load) -> None:
    found = load()
    assert found.wanting(Kind.CHECK_FAILED, "alpha", ()) == ["webhook/chat"]
    assert len(found.wanting(Kind.BUDGET_THRESHOLD, "alpha", ("org/vision/x",))) == 3


def test_mail_has_quiet_hours_and_a_webhook_has_none(load: Load) -> None:
    import datetime as dt

    night = dt.datetime(2026, 12, 1, 23, tzinfo=dt.UTC)
    webhook, lead, _ = load().targets
    assert isinstance(lead.subscription, Mail)
    assert (webhook.is_quiet(night, "UTC"), lead.is_quiet(night, "UTC")) == (False, True)
    assert not lead.is_quiet(night + dt.timedelta(hours=9), "UTC")


def test_a_proposal_is_for_who_answers_for_all_that_it_names() -> None:
    """As with the API: who sees one of two accounts does not see what moves between them."""
    vision = Subscription(account="org/vision")
    inside, across = ("org/vision/a", "org/vision/b"), ("org/vision/a", "org/speech")
    assert vision.wants(Kind.PROPOSAL_MADE, None, inside)
    assert not vision.wants(Kind.PROPOSAL_MADE, None, across)
    assert Subscription(account="org").wants(Kind.PROPOSAL_MADE, None, across)
    assert Subscription().wants(Kind.PROPOSAL_MADE, None, across)
    assert not vision.wants(Kind.PROPOSAL_MADE, None, ())


def test_a_node_s_own_is_for_who_answers_for_just_that_node() -> None:
    lead, everybody = Subscription(account="org/a"), Subscription()
    digest = Kind.DIGEST_WEEKLY
    assert lead.wants(digest, "alpha", ("org/a",))
    assert not lead.wants(digest, "alpha", ("org/a/x",))
    assert not lead.wants(digest, "alpha", ())
    assert everybody.wants(digest, "alpha", ())
    assert not everybody.wants(digest, "alpha", ("org/a",))
    assert not Subscription(clusters=("beta",)).wants(digest, "alpha", ())


def test_the_nodes_are_those_whose_week_somebody_wants_to_know(load: Load) -> None:
    assert load().nodes() == {None, "org/vision"}
    text = FILE.replace("account: org/vision", "account: org/vision\n    notices: [close.sealed]")
    assert load(text).nodes() == {None}
