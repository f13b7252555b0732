"""Identity tokens: good ones say who it is, and every known way to make one up fails."""

import datetime as dt
import io
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, HTTPMessage
from threading import Event
from typing import Any
from urllib.request import HTTPRedirectHandler, Request

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from gpuledger.identity import oidc
from gpuledger.identity.caller import Scope
from gpuledger.identity.groups import Groups
from gpuledger.identity.oidc import KEPT_S, LEEWAY_S, REFRESH_S, Provider, fetch
from gpuledger.identity.roles import Role
from gpuledger.kernel.clock import FixedClock
from gpuledger.kernel.errors import Forbidden, Unavailable, Unidentified

ISSUER, AUDIENCE = "https://id.example", "gpuledger"
NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
NOW_S = int(NOW.timestamp())
GROUPS = Groups.model_validate({"groups": {"vision": {"role": "lead", "subtree": "org/vision"}}})
OLD, NEW = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
CURVE = ec.generate_private_key(ec.SECP256R1())
CLAIMS = {
    "iss": ISSUER, "aud": AUDIENCE, "sub": "17", "exp": NOW_S + 300, "iat": NOW_S, "groups": ["vision"],
    "preferred_username": "lin",
}  # fmt: skip


def published(key: Any, kid: str, **more: str) -> dict[str, Any]:  # noqa: ANN401 - a private key
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, **more}


class Site:
    """The provider's pages, and how often they were asked for."""

    def __init__(self) -> None:
        self.keys = [published(OLD, "old"), published(CURVE, "curve", use="sig")]
        self.asked = 0
        self.away = False
        self.about: Any = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}

    def fetch(self, url: str) -> Any:  # noqa: ANN401 - any JSON
        if self.away:
            self.asked += 1
            raise Unavailable("away")
        if url == f"{ISSUER}/keys":
            self.asked += 1
            return {"keys": self.keys}
        assert url == f"{ISSUER}/.well-known/openid-configuration"
        return self.about


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def provider(site: Site) -> Provider:
    return Provider(ISSUER, AUDIENCE, GROUPS, FixedClock(NOW), site.fetch)


def signed(key: Any = OLD, kid: str | None = "old", algorithm: str = "RS256", **changes: object) -> str:  # noqa: ANN401
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm, headers=None if kid is None else {"kid": kid})


def later(provider: Provider, seconds: int) -> None:
    assert isinstance(provider.clock, FixedClock)
    provider.clock.at = NOW + dt.timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "token",
    [signed(), signed(CURVE, "curve", "ES256"), signed(aud=["other", AUDIENCE]), signed(algorithm="PS256")],
)
def test_a_good_token_says_who_it_is(provider: Provider, token: str) -> None:
    assert provider.is_meant(token)
    caller = provider.recognise(token)
    assert (caller.name, caller.role, caller.scope, caller.token) == (
        "17",
        Role.LEAD,
        Scope("org/vision"),
        None,
    )


def test_who_takes_anothers_name_is_not_taken_for_them(provider: Provider) -> None:
    lin, other = signed(), signed(sub="18")
    assert provider.recognise(lin).name != provider.recognise(other).name
    assert provider.recognise(signed(preferred_username="li")).name == provider.recognise(lin).name


@pytest.mark.parametrize("sub", ["", "a" * 256, "li\nn", "\u202elin"])
def test_a_subject_that_cannot_stand_in_a_log_names_nobody(provider: Provider, sub: str) -> None:
    with pytest.raises(Unidentified, match="names nobody"):
        provider.recognise(signed(sub=sub))


@pytest.mark.parametrize("said", [["lin"], {"first": "lin"}, True, 7])
def test_a_claim_that_is_no_text_names_nobody(site: Site, said: object) -> None:
    groups = GROUPS.model_copy(update={"name": "preferred_username"})
    provider = Provider(ISSUER, AUDIENCE, groups, FixedClock(NOW), site.fetch)
    with pytest.raises(Unidentified, match="preferred_username is no name"):
        provider.recognise(signed(preferred_username=said))


@pytest.mark.parametrize("changes", [{"exp": str(NOW_S + 300)}, {"exp": True}, {"nbf": "0"}, {"iat": [0]}])
def test_an_instant_is_a_number(provider: Provider, changes: dict[str, object]) -> None:
    with pytest.raises(Unidentified, match=r"is no number|not good"):
        provider.recognise(signed(**changes))


def test_the_file_may_name_another_claim_for_which_the_subject_stands_where_it_is_missing(site: Site) -> None:
    groups = GROUPS.model_copy(update={"name": "preferred_username"})
    provider = Provider(ISSUER, AUDIENCE, groups, FixedClock(NOW), site.fetch)
    assert provider.recognise(signed()).name == "lin"
    assert provider.recognise(signed(preferred_username=None)).name == "17"


def _public(key: rsa.RSAPrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


def _shared_secret() -> str:
    """Return a token that is signed with the public key, as if it were a secret that both sides share."""
    head, body, _ = signed().split(".")
    header = jwt.utils.base64url_encode(json.dumps({"alg": "HS256", "kid": "old"}).encode()).decode()
    from hashlib import sha256
    from hmac import new

    mac = new(_public(OLD), f"{header}.{body}".encode(), sha256).digest()
    assert head
    return f"{header}.{body}.{jwt.utils.base64url_encode(mac).decode()}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(lambda: signed(aud="another"), id="another audience"),
        pytest.param(lambda: signed(aud=None), id="no audience"),
        pytest.param(lambda: signed(iss="https://evil.example"), id="another issuer"),
        pytest.param(lambda: signed(iss=ISSUER + "/"), id="nearly the issuer"),
        pytest.param(lambda: signed(exp=NOW_S - LEEWAY_S), id="expired"),
        pytest.param(lambda: signed(exp=None), id="without an end"),
        pytest.param(lambda: signed(exp="soon"), id="an end that is no time"),
        pytest.param(lambda: signed(nbf=NOW_S + LEEWAY_S + 1), id="not yet"),
        pytest.param(lambda: signed(iat=NOW_S + LEEWAY_S + 1), id="from the future"),
        pytest.param(lambda: signed(sub=None), id="about nobody"),
        pytest.param(lambda: signed(NEW, "old"), id="another key under a known name"),
        pytest.param(lambda: signed(NEW, "new"), id="a key that is not published"),
        pytest.param(lambda: signed(kid=None), id="no name of a key"),
        pytest.param(lambda: jwt.encode(CLAIMS, "", "none", headers={"kid": "old"}), id="unsigned"),
        pytest.param(lambda: signed().rpartition(".")[0] + ".", id="signature cut off"),
        pytest.param(lambda: jwt.encode(CLAIMS, "s" * 64, "HS256", headers={"kid": "old"}), id="a secret"),
        pytest.param(_shared_secret, id="the public key as a secret"),
        pytest.param(lambda: signed(CURVE, "old", "ES256"), id="another kind of key"),
        pytest.param(lambda: "a.b.c", id="nonsense"),
        pytest.param(lambda: "..", id="nothing"),
        pytest.param(lambda: f"{jwt.utils.base64url_encode(b'[' * 40_000).decode()}.e30.e30", id="too deep"),
    ],
)
def test_what_is_made_up_does_not_open(provider: Provider, token: Callable[[], str]) -> None:
    with pytest.raises(Unidentified):
        provider.recognise(token())


def test_an_end_allows_for_clocks_that_differ(provider: Provider) -> None:
    assert provider.recognise(signed(exp=NOW_S - LEEWAY_S + 1))


@pytest.mark.parametrize("groups", [None, [], ["speech"], "vis"])
def test_who_is_in_no_group_of_ours_is_known_and_not_let_in(provider: Provider, groups: object) -> None:
    with pytest.raises(Forbidden, match="17 is in no group"):
        provider.recognise(signed(groups=groups))


def test_keys_are_asked_for_once_and_a_new_one_is_found(provider: Provider, site: Site) -> None:
    for _ in range(5):
        provider.recognise(signed())
    assert site.asked == 1
    site.keys = [published(NEW, "new")]
    later(provider, REFRESH_S)
    assert provider.recognise(signed(NEW, "new"))
    with pytest.raises(Unidentified):  # the old one was withdrawn
        provider.recognise(signed())
    assert site.asked == 2


def test_made_up_names_of_keys_do_not_have_the_provider_asked_over_and_over(
    provider: Provider, site: Site
) -> None:
    for number in range(50):
        with pytest.raises(Unidentified):
            provider.recognise(signed(NEW, f"made-up-{number}"))
    assert site.asked == 1


def test_a_withdrawn_key_is_forgotten_after_a_while(provider: Provider, site: Site) -> None:
    provider.recognise(signed(exp=NOW_S + 2 * KEPT_S))
    site.keys = []
    later(provider, KEPT_S - 1)
    provider.recognise(signed(exp=NOW_S + 2 * KEPT_S))
    later(provider, KEPT_S)
    with pytest.raises(Unidentified):
        provider.recognise(signed(exp=NOW_S + 2 * KEPT_S))


def test_a_provider_that_is_away_is_not_asked_by_everybody(provider: Provider, site: Site) -> None:
    site.away = True
    for _ in range(5):
        with pytest.raises(Unavailable):
            provider.recognise(signed())
    assert site.asked == 1
    site.away = False
    later(provider, REFRESH_S)
    assert provider.recognise(signed())


@pytest.mark.parametrize(
    "answer",
    [HTTPException("cut off"), OSError("refused"), b"no JSON", b"\xff", b"[" * 100_000],
    ids=["cut off", "refused", "no JSON", "no text", "too deep"],
)
def test_whatever_a_provider_answers_it_is_away_or_it_is_json(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | Exception
) -> None:
    def urlopen(url: str, timeout: int) -> io.BytesIO:
        assert timeout > 0
        if isinstance(answer, Exception):
            raise answer
        return io.BytesIO(answer)

    monkeypatch.setattr("gpuledger.identity.oidc._opener.open", urlopen)
    with pytest.raises(Unavailable, match="does not answer") as away:
        fetch(f"{ISSUER}/keys")
    assert "GPULEDGER_OIDC_ISSUER" in away.value.hint


def test_nobody_whose_key_is_known_waits_for_a_provider_that_is_slow(site: Site) -> None:
    asked, go_on = Event(), Event()

    def slow(url: str) -> Any:  # noqa: ANN401 - any JSON
        if provider.clock.now() != NOW:
            asked.set()
            assert go_on.wait(30)
        return site.fetch(url)

    provider = Provider(ISSUER, AUDIENCE, GROUPS, FixedClock(NOW), slow)
    provider.recognise(signed())
    provider.clock = FixedClock(NOW + dt.timedelta(seconds=KEPT_S))
    later = signed(exp=NOW_S + 2 * KEPT_S)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(provider.recognise, later)
        try:
            assert asked.wait(30)
            assert pool.submit(provider.recognise, later).result(timeout=20).name == "17"
            assert not first.done()
        finally:
            go_on.set()
        assert first.result(timeout=30).name == "17"
    assert site.asked == 2


def test_known_keys_stay_good_while_it_is_away(provider: Provider, site: Site) -> None:
    provider.recognise(signed())
    site.away = True
    later(provider, KEPT_S)
    assert provider.recognise(signed(exp=NOW_S + 2 * KEPT_S))


@pytest.mark.parametrize(
    "change",
    [
        {"about": {"issuer": "https://other.example", "jwks_uri": f"{ISSUER}/keys"}},
        {"about": {"issuer": ISSUER}},
        {"about": []},
        {"keys": [{"kid": "x", "kty": "RSA"}]},
        {"keys": ["x"]},
    ],
)
def test_pages_that_cannot_be_read_are_named(provider: Provider, site: Site, change: dict[str, Any]) -> None:
    for name, value in change.items():
        setattr(site, name, value)
    with pytest.raises(Unavailable, match=r"id\.example"):
        provider.recognise(signed())


def test_a_ledgers_own_token_is_not_meant(provider: Provider) -> None:
    assert not provider.is_meant("gpl_000000000000_" + "A" * 43)


@pytest.mark.parametrize("address", ["http://id.example/keys", "ftp://127.0.0.1/keys", "file:///etc/keys"])
def test_keys_that_could_be_exchanged_on_the_way_are_not_asked_for(
    site: Site, provider: Provider, address: str
) -> None:
    site.about["jwks_uri"] = address
    with pytest.raises(Unavailable, match="anybody on the way"):
        provider.recognise(jwt.encode(CLAIMS, OLD, "RS256", {"kid": "old"}))
    assert site.asked == 0


def redirected(url: str, to: str) -> object:
    """What follows a redirection of the answer at an address."""
    (handler,) = (one for one in oidc._opener.handlers if isinstance(one, HTTPRedirectHandler))
    return handler.redirect_request(Request(url), io.BytesIO(), 302, "Found", HTTPMessage(), to)


@pytest.mark.parametrize("to", ["http://id.example/keys", "http://127.0.0.1/keys", "ftp://id.example/keys"])
def test_a_secured_address_leads_to_no_other(to: str) -> None:
    with pytest.raises(OSError, match="anybody on the way"):
        redirected("https://id.example/jwks", to)
    assert redirected("https://id.example/jwks", "https://keys.example/jwks")


def test_what_is_asked_on_this_machine_stays_on_it_or_is_secured() -> None:
    with pytest.raises(OSError, match="anybody on the way"):
        redirected("http://127.0.0.1:8080/jwks", "http://id.example/keys")
    assert redirected("http://127.0.0.1:8080/jwks", "http://localhost:8081/keys")
    assert redirected("http://127.0.0.1:8080/jwks", "https://id.example/keys")
