"""Identity tokens of an OpenID Connect provider: JSON Web Tokens, proven by the keys that the provider publishes.

Keys are kept for a while and asked for anew when a token names one that is not known, at most once in ``REFRESH_S``:
who makes up names of keys cannot have the provider asked over and over. Only signatures by a private key count;
``none`` and shared secrets do not, whatever a token says of itself.
"""

import json
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from threading import Lock
from typing import IO, Any
from urllib.parse import urlsplit

import jwt

from gpuledger.identity.caller import Caller
from gpuledger.identity.groups import Groups
from gpuledger.kernel.clock import Clock, seconds
from gpuledger.kernel.errors import Forbidden, Unavailable, Unidentified

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")

REFRESH_S, KEPT_S = 30, 3600
"""Unknown keys are asked for at most this often, and known ones are asked for anew after this long."""

LEEWAY_S = 30
"""How far the provider's clock and this one may be apart."""

NAME_LENGTH_MAX = 255
"""As long as a subject may be."""

_TIMEOUT_S = 5

_LOOPBACK = ("127.0.0.1", "localhost", "::1")

Fetch = Callable[[str], Any]
"""Returns the JSON document at an address; raises Unavailable."""


class _Straight(urllib.request.HTTPRedirectHandler):
    """Follows nobody to where what is read could be exchanged on the way: a secured address stays secured."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        onward = urlsplit(newurl)
        if onward.scheme != "https" and not (req.type == "http" and onward.hostname in _LOOPBACK):
            raise OSError(f"it leads on to {newurl}, where anybody on the way could answer")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


_opener = urllib.request.build_opener(_Straight)


def fetch(url: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON document at an address.

    Raises:
        Unavailable: When nobody answers, when what is answered is no JSON, or when it leads from https elsewhere.
    """
    try:
        with _opener.open(url, timeout=_TIMEOUT_S) as answer:
            return json.loads(answer.read())
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        raise Unavailable(
            f"the identity provider does not answer at {url}: {error}",
            hint="check GPULEDGER_OIDC_ISSUER, and that this machine reaches it",
        ) from error


@dataclass(slots=True)
class Provider:
    """An OpenID Connect provider, and what its groups mean here.

    Args:
        issuer: Its address, as its tokens name it.
        audience: What its tokens must be meant for: the client's id of this ledger.
        groups: What groups mean.
        clock: The present.
        fetch: Gets documents; another in tests.
    """

    issuer: str
    audience: str
    groups: Groups
    clock: Clock
    fetch: Fetch = fetch
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict)
    _asked_s: int = 0
    _next_s: int = 0
    _fault: Unavailable | None = None
    _turn: Lock = field(default_factory=Lock)

    def is_meant(self, text: str) -> bool:
        """Say whether a text has the form of a JSON Web Token."""
        return text.count(".") == 2  # noqa: PLR2004 - header, claims, signature

    def recognise(self, text: str) -> Caller:
        """Return who shows an identity token.

        Raises:
            Unidentified: When it is not the provider's, not for this ledger, or not good now.
            Forbidden: When its bearer is in no group that means something here.
            Unavailable: When the provider's keys cannot be had.
        """
        claims = self._proven(text)
        meaning = self.groups.meaning(claims)
        name = _name(claims, self.groups.name)
        if meaning is None:
            raise Forbidden(
                f"{name} is in no group that means something here",
                hint=f"GPULEDGER_OIDC_GROUPS says what groups of the claim {self.groups.claim!r} mean",
            )
        return Caller(name, meaning.role, meaning.scope)

    def _proven(self, text: str) -> dict[str, Any]:
        try:
            kid = jwt.get_unverified_header(text).get("kid")
            key = self._key(kid).key  # a key of one kind, which fits the algorithms of that kind alone
            # The library would read the machine's clock; times are held against the one that is given.
            claims: dict[str, Any] = jwt.decode(
                text,
                key,
                algorithms=list(ALGORITHMS),
                audience=self.audience,
                issuer=self.issuer,
                options={
                    "require": ["exp", "iss", "aud", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
            self._check_times(claims)
        except (jwt.PyJWTError, TypeError, ValueError, OverflowError, RecursionError) as error:
            raise Unidentified(
                f"the identity token is not good: {error}",
                hint="sign in again; it must be meant for this ledger",
            ) from error
        return claims

    def _check_times(self, claims: dict[str, Any]) -> None:
        now_s = seconds(self.clock.now())
        if now_s >= _instant_s(claims, "exp") + LEEWAY_S:
            raise jwt.ExpiredSignatureError("it has expired")
        if now_s < _instant_s(claims, "nbf" if "nbf" in claims else "iat") - LEEWAY_S:
            raise jwt.ImmatureSignatureError("it is not good yet")

    def _key(self, kid: object) -> jwt.PyJWK:
        """Return the key of a name; asks the provider where it is not known, or known for long.

        A provider that does not answer is not asked again at once, and the keys that are known stay good meanwhile. One
        asks for all: whose key is known does not wait for the answer, and others wait no longer than they have to.

        Raises:
            Unavailable: When no key is known yet, and the provider does not answer.
        """
        if self._is_due(kid) and self._turn.acquire(timeout=self._patience_s(kid)):
            try:
                if self._is_due(kid):  # whoever asked before may have had it
                    self._refresh()
            finally:
                self._turn.release()
        if not self._keys and self._fault is not None:
            raise self._fault
        found = self._keys.get(kid) if isinstance(kid, str) else None
        if found is None:
            raise jwt.InvalidKeyError("it names a key that the provider does not publish")
        return found

    def _is_due(self, kid: object) -> bool:
        now_s = seconds(self.clock.now())
        return now_s >= self._next_s or (kid not in self._keys and now_s >= self._asked_s + REFRESH_S)

    def _patience_s(self, kid: object) -> int:
        """Return how long to wait for who asks the provider already: a thread that waits answers nobody else."""
        if kid in self._keys:
            return 0
        return 1 if self._keys or self._fault is not None else 2 * _TIMEOUT_S

    def _refresh(self) -> None:
        now_s = seconds(self.clock.now())
        try:
            self._keys, self._fault = self._published(), None
            self._next_s = now_s + KEPT_S
        except Unavailable as error:
            self._fault, self._next_s = error, now_s + REFRESH_S
        self._asked_s = now_s

    def _published(self) -> dict[str, jwt.PyJWK]:
        about = self.fetch(f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if not isinstance(about, dict) or about.get("issuer") != self.issuer:
            raise Unavailable(
                f"what answers at {self.issuer} is no identity provider of that name",
                hint="write GPULEDGER_OIDC_ISSUER exactly as the provider writes its issuer",
            )
        try:
            keys = self.fetch(_secured(about["jwks_uri"]))["keys"]
            return {key["kid"]: jwt.PyJWK(key) for key in keys if _signs(key)}
        except (KeyError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise Unavailable(
                f"the keys of the identity provider {self.issuer} cannot be read: {error}",
                hint="look at what its jwks_uri answers",
            ) from error


def _instant_s(claims: dict[str, Any], claim: str) -> int:
    """Return the instant that a claim names, seconds since the epoch; 0 where it is missing."""
    said = claims.get(claim, 0)
    if isinstance(said, bool) or not isinstance(said, int | float):
        raise jwt.DecodeError(f"its {claim} is no number")
    return int(said)


def _name(claims: dict[str, Any], claim: str) -> str:
    """Return what somebody is known by: a claim, or the subject where that is missing.

    Raises:
        Unidentified: When it cannot stand in an order or a log.
    """
    said = claims.get(claim) or claims["sub"]
    if not isinstance(said, str) or not 0 < len(said) <= NAME_LENGTH_MAX or not said.isprintable():
        raise Unidentified(
            f"the identity token names nobody: {claim} is no name of 1 to {NAME_LENGTH_MAX} printable characters",
            hint="GPULEDGER_OIDC_GROUPS says by which claim people are known",
        )
    return said


def _secured(address: str) -> str:
    """Return the address of keys that nobody on the way can exchange.

    Raises:
        Unavailable: When it is neither https nor on this machine.
    """
    url = urlsplit(address)
    if url.scheme != "https" and not (url.scheme == "http" and url.hostname in _LOOPBACK):
        raise Unavailable(
            f"the identity provider publishes its keys at {address}, where anybody on the way could put others",
            hint="the provider must name an https address as its jwks_uri",
        )
    return address


def _signs(key: dict[str, Any]) -> bool:
    """Say whether a published key proves signatures: it has a name, and is no secret that both sides share."""
    return bool(key.get("kid")) and key.get("kty") in ("RSA", "EC", "OKP") and key.get("use", "sig") == "sig"
