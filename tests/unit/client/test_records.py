"""The client reads what the document's examples say of hosts, accounts and closes."""

import datetime as dt

from tests.unit.client.scripted import answering, asked


def test_what_the_books_tell_is_typed() -> None:
    assert answering("listHosts").hosts(cluster="philly").hosts[0].usable_gpus == 0
    (drain,) = answering("listDrains").drains().drains
    assert (drain.runs[0].run, drain.empty_by) == ("1", "2026-12-01T09:20:00Z")
    (incident,) = answering("listIncidents").incidents(from_=dt.date(2026, 12, 1)).incidents
    assert (incident.runs[0].state, incident.credited_gpu_ms) == ("credited", 14_400_000)
    (account,) = answering("listAccounts").accounts().accounts
    assert (account.shares[0].from_, account.shares[0].share) == ("2017-10-01T00:00:00Z", 3)
    assert answering("listCloses").closes(period="2017-10").closes[0].state == "sealed"
    assert answering("getClose").close_of("philly", "2017-10").whole


def test_a_cluster_with_a_slash_stays_one_part_of_the_path() -> None:
    request = asked("getClose", lambda client: client.close_of("a/b", "2017-10", version=2))
    assert request.url.raw_path == b"/v1/closes/a%2Fb/2017-10?version=2"
