"""The page of the administration: who may ask, how far, and which shares are set."""

import msgspec
from tests.unit.dashboards.pages import ADMIN, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.outcomes import TokenRow
from gpuledger.client.records import Account
from gpuledger_dashboards import admin

TOKEN = msgspec.convert(EXAMPLES["listTokens"]["tokens"][0], TokenRow)
ACCOUNT = msgspec.convert(EXAMPLES["listAccounts"]["accounts"][0], Account)
ENDED = msgspec.structs.replace(
    TOKEN,
    id="old",
    name="once",
    good=False,
    revoked_at="2026-11-02T08:00:00Z",
    revoked_by="ada",
    last_used_at=None,
)


def shown(client: FakeClient) -> str:
    return "".join(element.proto.body for element in run_page(ADMIN).get("html"))


def test_tokens_and_accounts_for_an_administrator(client: FakeClient) -> None:
    client.admitted, client.rights, client.tree = (ENDED, TOKEN), ("read-tokens",), (ACCOUNT,)
    text = text_of(run_page(ADMIN))
    assert "1 of 2 tokens open the API." in text
    assert "gpuledger token create NAME" in text
    tables = shown(client)
    assert "every account on philly" in tables
    assert "revoked 2026-11-02 08:00 UTC by ada" in tables
    assert ACCOUNT.account in tables


def test_who_is_none_is_told_so_and_tokens_are_not_fetched(client: FakeClient) -> None:
    client.rights, client.tree = ("read-accounts",), (ACCOUNT,)
    text = text_of(run_page(ADMIN))
    assert "shown to administrators" in text
    assert ("tokens",) not in client.asked
    assert ACCOUNT.account in shown(client)


def test_no_account_names_the_command(client: FakeClient) -> None:
    assert "gpuledger budget apply" in text_of(run_page(ADMIN))


def test_those_that_are_good_come_first_and_idle_ones_are_counted() -> None:
    unused = msgspec.structs.replace(TOKEN, id="new", last_used_at=None)
    assert [row["Id"] for row in admin.tokens([ENDED, TOKEN])] == [TOKEN.id, "old"]
    assert admin.headline([unused, TOKEN]) == "2 of 2 tokens open the API; 1 of them were never used."
    expired = msgspec.structs.replace(TOKEN, good=False)
    assert admin.tokens([expired])[0]["State"].startswith("ended 2027-11-01")


def test_downloads_have_every_share_that_was_set() -> None:
    bare = msgspec.structs.replace(ACCOUNT, shares=(), share=None)
    assert len(admin.account_rows([ACCOUNT, bare])) == len(ACCOUNT.shares) + 1
    assert admin.accounts([bare])[0]["Share"] == "1, not set"
    assert admin.token_rows([TOKEN])[0]["clusters"] == "philly"
