"""What docs/notifications.md tells receivers and operators works as it stands there."""

import re
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from standardwebhooks import WebhookVerificationError
from tests.integration.notify.receiving import SECRET, Received, receiver

from gpuledger.kernel.clock import SystemClock
from gpuledger.notify.notices import Kind, Notice, read_body
from gpuledger.notify.payloads import Trial
from gpuledger.notify.recipients import Target, Webhook, load_recipients
from gpuledger.notify.sending import Message
from gpuledger.notify.webhooks import WebhookSender
from gpuledger.settings import Settings

Verify = Callable[[str, dict[str, str], bytes], dict[str, Any]]
OTHER = "whsec_" + SECRET[10:] + SECRET[6:10]


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs/notifications.md").read_text()


def fenced(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def verifiers(page: str) -> list[Verify]:
    """Each function of the page, as a reader would paste it."""
    names: dict[str, Any] = {}
    for block in fenced(page, "python"):
        exec(compile(block, "docs/notifications.md", "exec"), names)
    return [names["notice_of"], names["notice_by_hand"]]


@pytest.fixture(scope="module")
def got() -> Received:
    """A request that was really sent, with two signatures."""
    now = SystemClock().now()
    notice = Notice(Kind.TEST, ("x",), Trial(by="ädä"))
    with receiver() as there:
        webhook = Webhook.model_validate({"url": there.url, "secret_file": Path("unused")})
        target = Target("webhook/x", webhook, (SecretStr(OTHER), SecretStr(SECRET)))
        WebhookSender()(target, Message(notice.id, notice.body(now), now))
    return there.received[0]


@pytest.mark.parametrize("which", [0, 1], ids=["library", "by hand"])
def test_a_receiver_verifies_as_the_page_says(verifiers: list[Verify], got: Received, which: int) -> None:
    for secret in (SECRET, OTHER):
        assert verifiers[which](secret, dict(got.headers), got.body)["data"] == {"by": "ädä"}


@pytest.mark.parametrize("which", [0, 1], ids=["library", "by hand"])
@pytest.mark.parametrize(
    "forged",
    [
        {"body": b"{}"},
        {"webhook-id": "ntc_other"},
        {"webhook-timestamp": "the next second"},
        {"webhook-timestamp": "1"},
        {"webhook-signature": "v1,AAAA"},
        {"secret": "whsec_" + SECRET[8:] + SECRET[6:8]},
    ],
    ids=lambda forged: next(iter(forged)),
)
def test_a_forged_request_is_refused_as_the_page_says(
    verifiers: list[Verify], got: Received, which: int, forged: dict[str, Any]
) -> None:
    headers = {name: forged.get(name, value) for name, value in got.headers.items()}
    if headers["webhook-timestamp"] == "the next second":
        headers["webhook-timestamp"] = str(int(got.headers["webhook-timestamp"]) + 1)
    with pytest.raises((WebhookVerificationError, ValueError)):
        verifiers[which](forged.get("secret", SECRET), headers, forged.get("body", got.body))


def test_the_command_makes_a_secret_that_the_example_file_takes(page: str, tmp_path: Path) -> None:
    (command,) = fenced(page, "sh")
    subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    secret = tmp_path / "finance.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    (tmp_path / "operators.secret").write_text(secret.read_text())
    (example,) = fenced(page, "yaml")
    (tmp_path / "recipients.yaml").write_text(example)
    found = load_recipients(
        Settings(notifications=tmp_path / "recipients.yaml", smtp_host="mail", smtp_from="a@example.org")
    )
    assert found is not None
    assert [each.name.rsplit("/", each.name.count("/") - 1)[0] for each in found.targets] == [
        "webhook/finance", "webhook/operators", "mail/vision-leads", "mail/vision-leads", "mail/speech-manager",
    ]  # fmt: skip
    assert found.wanting(Kind.CHECK_FAILED, "alpha", ()) == ["webhook/operators"]
    assert len(found.wanting(Kind.BUDGET_THRESHOLD, "alpha", ("institute/speech/asr",))) == 2


def test_the_example_is_a_payload(page: str) -> None:
    (example,) = fenced(page, "json")
    kind, _, data = read_body(example.encode())
    assert (kind, getattr(data, "threshold_percent", None)) == (Kind.BUDGET_THRESHOLD, 80)


def test_the_page_names_every_setting(page: str) -> None:
    names = {name for name in Settings.model_fields if name == "notifications" or name.startswith("smtp_")}
    told = set(re.findall(r"`(GPULEDGER_\w+)`", page)) - {"GPULEDGER_DATA_DOCS_URL"}  # of another page
    assert {f"GPULEDGER_{name.upper()}" for name in names} == told
