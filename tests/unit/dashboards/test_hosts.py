"""The page of hosts: what is unwell, what is being emptied, what failures gave back."""

import msgspec
from tests.unit.dashboards.pages import HOSTS, FakeClient, run_page, text_of

from gpuledger.api.examples import EXAMPLES
from gpuledger.client.records import DrainRow, HostRow, Hosts, Incident
from gpuledger_dashboards import hosts


def host(name: str = "h1", state: str = "healthy", usable: int = 8) -> HostRow:
    told = msgspec.convert(EXAMPLES["listHosts"]["hosts"][0], HostRow)
    return msgspec.structs.replace(told, host=name, state=state, usable_gpus=usable, reason=None)


DRAIN = msgspec.convert(EXAMPLES["listDrains"]["drains"][0], DrainRow)
FAILURE = msgspec.convert(EXAMPLES["listIncidents"]["incidents"][0], Incident)


def tables(client: FakeClient) -> str:
    return "".join(element.proto.body for element in run_page(HOSTS, cluster="alpha").get("html"))


def test_the_fleet_at_a_glance(client: FakeClient) -> None:
    client.fleet = (host(), host("h2", "draining", 0), host("h3", "reserved"))
    client.leaving, client.failures = (DRAIN,), (FAILURE,)
    text = text_of(run_page(HOSTS, cluster="alpha"))
    assert "16 of 24 GPUs on 3 hosts may be used; one host is not well, 1 of them being emptied." in text
    shown = tables(client)
    assert "2026-12-01 09:20 UTC (bound)" in shown
    assert "8851 of philly/ee9e8c, protected until 2026-12-01 09:18 UTC" in shown
    assert "xid-79" in shown
    assert "4.0" in shown


def test_the_worst_comes_first() -> None:
    found = [
        host("a"),
        host("b", "draining"),
        host("c", "unhealthy"),
        host("d", "maintenance"),
        host("e", "lost"),
    ]
    assert [one.host for one in hosts.worst_first(found)] == ["c", "e", "d", "b", "a"]
    assert [row["Host"] for row in hosts.table(found)] == ["c", "e", "d", "b", "a"]
    assert hosts.csv_rows(found)[0]["state"] == "unhealthy"


def test_what_a_large_fleet_leaves_out_is_told(client: FakeClient) -> None:
    some = Hosts(hosts=(host(),) * hosts.SHOWN_MAX, next=None, as_of="2026-12-01T12:00:00Z")
    assert hosts.left_out(some) is None
    more = msgspec.structs.replace(some, hosts=(*some.hosts, host("last")))
    assert hosts.left_out(more) == "The worst 200 of 201 hosts; the download has all of them."
    paged = msgspec.structs.replace(some, next=200)
    assert str(hosts.left_out(paged)).startswith("These are figures of the first 200 hosts by name")
    client.fleet = more.hosts
    assert "The worst 200 of 201 hosts" in text_of(run_page(HOSTS, cluster="alpha"))


def test_sentences_count() -> None:
    assert hosts.headline([host()], []) == "8 of 8 GPUs on 1 hosts may be used."
    two = [host("a", "unhealthy", 0), host("b", "unhealthy", 0)]
    assert hosts.headline(two, []).endswith("; 2 hosts are not well.")
    assert hosts.headline([host()], [DRAIN]).endswith("; 1 are being emptied.")


def test_a_host_that_nobody_is_on_is_as_good_as_empty() -> None:
    assert hosts.leaving([msgspec.structs.replace(DRAIN, runs=())])[0]["Who is there"] == "nobody"


def test_no_inventory_names_the_command(client: FakeClient) -> None:
    assert "gpuledger inventory apply" in text_of(run_page(HOSTS, cluster="alpha"))


def test_quiet_days_say_so(client: FakeClient) -> None:
    client.fleet = (host(),)
    text = text_of(run_page(HOSTS, cluster="alpha"))
    assert "No host is being emptied." in text
    assert "None is known." in text
