"""The file of recipients: who is told what, for which accounts, and how they are reached."""

import base64
import binascii
import datetime as dt
import hashlib
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.errors import MessageError
from email.headerregistry import Address
from pathlib import Path
from typing import Annotated, assert_never

from pydantic import AfterValidator, ConfigDict, Field, SecretStr

from gpuledger.ingest.yaml_file import ClusterName, Strict, read_yaml
from gpuledger.kernel.accounts import check_path, is_within
from gpuledger.kernel.errors import GpuledgerError, Refused
from gpuledger.notify.addresses import place_of
from gpuledger.notify.notices import AUDIENCES, Audience, Kind
from gpuledger.notify.patience import Quiet
from gpuledger.notify.thresholds import THRESHOLDS
from gpuledger.settings import Settings

DOCS = "docs/notifications.md"
SECRET_PREFIX = "whsec_"  # noqa: S105 - how secrets begin, and none
SECRET_BYTES = range(24, 65)
"""How long the Standard Webhooks rules have a secret be."""

_MOST_THRESHOLD = 1000


def mail_address(text: str) -> str:
    """Refuse what is no single address, above all what could become a header of its own."""
    if not (text.isascii() and text.isprintable()) or any(mark in text for mark in ' <>,;:"'):
        raise ValueError("is no mail address of the form name@example.org")
    try:
        address = Address(addr_spec=text)
    except (MessageError, ValueError, IndexError) as error:
        raise ValueError("is no mail address of the form name@example.org") from error
    if not address.username or not address.domain:
        raise ValueError("is no mail address of the form name@example.org")
    return text


def _path(text: str) -> str:
    try:
        return check_path(text)
    except GpuledgerError as error:
        raise ValueError(f"{error.message}; {error.hint}") from error


def _url(text: SecretStr) -> SecretStr:
    place_of(text.get_secret_value())
    return text


def _clock(text: str) -> str:
    try:
        dt.time.fromisoformat(text)
    except ValueError as error:
        raise ValueError("is no time of day such as '20:00'; write it in quotes") from error
    if len(text) != len("20:00"):
        raise ValueError("is no time of day such as '20:00'; write it in quotes")
    return text


Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
MailAddress = Annotated[str, Field(max_length=254), AfterValidator(mail_address)]
Threshold = Annotated[int, Field(ge=1, le=_MOST_THRESHOLD)]


class QuietHours(Strict):
    """When nobody wants mail: ``from`` and ``to``, by the organisation's clock."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    from_: Annotated[str, AfterValidator(_clock)] = Field(alias="from")
    to: Annotated[str, AfterValidator(_clock)]

    @property
    def hours(self) -> Quiet:
        """The hours themselves."""
        return Quiet(dt.time.fromisoformat(self.from_), dt.time.fromisoformat(self.to))


class Subscription(Strict):
    """What somebody is told.

    Args:
        account: They answer for it and for all below it; for the whole organisation unless given.
        below: Whether they are told of the accounts below it too.
        clusters: Every cluster unless given.
        notices: Kinds of notices; all of them unless given.
    """

    account: Annotated[str, AfterValidator(_path)] | None = None
    below: bool = True
    clusters: tuple[ClusterName, ...] = ()
    notices: Annotated[tuple[Kind, ...], Field(min_length=1)] = tuple(Kind)

    def wants(self, kind: Kind, cluster: str | None, accounts: Sequence[str]) -> bool:
        """Say whether a notice is for them.

        Args:
            kind: What it is about.
            cluster: The cluster that it is about.
            accounts: The accounts that it is about; they answer for it who answer for all of them.
        """
        if kind not in self.notices or (
            self.clusters and cluster is not None and cluster not in self.clusters
        ):
            return False
        match AUDIENCES[kind]:
            case Audience.EVERYBODY:
                return True
            case Audience.OPERATORS:
                return self.account is None
            case Audience.NODE:
                return tuple(accounts) == (() if self.account is None else (self.account,))
            case Audience.ACCOUNT:
                return self.account is None or (bool(accounts) and all(map(self._answers_for, accounts)))
            case never:
                assert_never(never)

    def _answers_for(self, account: str) -> bool:
        if self.account is None or not self.below:
            return account == self.account
        return is_within(account, self.account)


class Webhook(Subscription):
    """A program that is sent notices.

    Args:
        url: Where; shown to nobody, for its path often is a secret.
        secret_file: A file with the secrets that requests are signed with, one a line; beside the file unless absolute.
        private: Whether the receiver is inside the organisation's own network.
        ca_file: PEM certificates that sign the receiver's; those that browsers trust unless given.
    """

    url: Annotated[SecretStr, AfterValidator(_url)]
    secret_file: Path
    private: bool = False
    ca_file: Path | None = None


class Mail(Subscription):
    """People who are sent notices by mail, each a message of their own.

    Args:
        to: Their addresses.
        quiet: Hours in which nothing is sent to them.
    """

    to: Annotated[tuple[MailAddress, ...], Field(min_length=1)]
    quiet: QuietHours | None = None


class _File(Strict):
    thresholds: Annotated[tuple[Threshold, ...], Field(min_length=1)] = THRESHOLDS
    webhooks: dict[Name, Webhook] = Field(default_factory=dict)
    mails: dict[Name, Mail] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Target:
    """One receiver of notices.

    Args:
        name: What the database knows it by: ``webhook/NAME``, or ``mail/NAME/DIGEST`` without the address.
        subscription: What it is told.
        secrets: What requests of a webhook are signed with.
        address: Where mail goes; None of a webhook.
    """

    name: str
    subscription: Webhook | Mail
    secrets: tuple[SecretStr, ...] = ()
    address: str | None = None

    def is_quiet(self, at: dt.datetime, timezone: str) -> bool:
        """Say whether nothing may be sent to it now."""
        quiet = self.subscription.quiet if isinstance(self.subscription, Mail) else None
        return quiet is not None and quiet.hours.holds(at, timezone)


@dataclass(frozen=True, slots=True)
class Recipients:
    """Everybody who is told anything.

    Args:
        targets: Them, by name.
        thresholds: Per cent of a budget that they are told of.
    """

    targets: tuple[Target, ...] = ()
    thresholds: tuple[int, ...] = THRESHOLDS

    def nodes(self) -> frozenset[str | None]:
        """Return the accounts of which somebody wants to know how the week was; None for the organisation."""
        of_weeks = (
            each.subscription for each in self.targets if Kind.DIGEST_WEEKLY in each.subscription.notices
        )
        return frozenset(each.account for each in of_weeks)

    def wanting(self, kind: Kind, cluster: str | None, accounts: Sequence[str]) -> list[str]:
        """Return the names of those whom a notice is for."""
        return [each.name for each in self.targets if each.subscription.wants(kind, cluster, accounts)]


def load_recipients(settings: Settings) -> Recipients | None:
    """Return who is told what, with their secrets read; None where no file is set: then nobody is told anything.

    Raises:
        NotFound: When there is no such file.
        Refused: When a key, value or secret of it does not fit.
    """
    path = settings.notifications
    if path is None:
        return None
    file = read_yaml(path, _File, DOCS)
    if file.mails and settings.smtp_host is None:
        raise Refused(f"{path}: mails cannot be sent: no server is set", hint="set GPULEDGER_SMTP_HOST")
    targets = (*_webhooks(path, file), *_mails(file))
    return Recipients(targets, tuple(sorted(set(file.thresholds))))


def _webhooks(path: Path, file: _File) -> Iterator[Target]:
    for name, webhook in file.webhooks.items():
        secrets = _secrets(path.parent / webhook.secret_file, f"{path}: webhooks.{name}.secret_file")
        ca_file = webhook.ca_file and path.parent / webhook.ca_file
        if ca_file is not None:
            _check_certificates(ca_file, f"{path}: webhooks.{name}.ca_file")
        yield Target(f"webhook/{name}", webhook.model_copy(update={"ca_file": ca_file}), secrets)


def _mails(file: _File) -> Iterator[Target]:
    for name, mail in file.mails.items():
        for address in dict.fromkeys(mail.to):
            # The address is personal; the database keeps what tells it from the others of the same name.
            digest = hashlib.sha256(f"{name}\0{address.lower()}".encode()).hexdigest()[:12]
            yield Target(f"mail/{name}/{digest}", mail, address=address)


def _secrets(path: Path, place: str) -> tuple[SecretStr, ...]:
    hint = f"a line each, whsec_ and {SECRET_BYTES[0]} to {SECRET_BYTES[-1]} random bytes in base64; {DOCS} shows how"
    try:
        lines = path.read_text(encoding="ascii").split()
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{place}: cannot be read: {type(error).__name__}", hint=hint) from error
    for number, line in enumerate(lines, start=1):
        if not _is_secret(line):
            raise Refused(f"{place}: line {number} is no secret", hint=hint)
    if not lines:
        raise Refused(f"{place}: holds no secret", hint=hint)
    return tuple(map(SecretStr, lines))


def _check_certificates(path: Path, place: str) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # what ssl raises is one too
        raise Refused(
            f"{place}: cannot be read: {type(error).__name__}",
            hint="PEM certificates of who signs the receiver's",
        ) from error


def _is_secret(line: str) -> bool:
    prefix, content = line[: len(SECRET_PREFIX)], line[len(SECRET_PREFIX) :]
    try:
        return prefix == SECRET_PREFIX and len(base64.b64decode(content, validate=True)) in SECRET_BYTES
    except binascii.Error:
        return False


__all__ = [
    "Mail", "Recipients", "Subscription", "Target", "Webhook", "load_recipients",
]  # fmt: skip
