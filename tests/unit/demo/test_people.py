"""Four people of the demo, each with an address, a question and a file of their own."""

from pathlib import Path

from gpuledger.demo import people
from gpuledger.demo.month import Preempted

ACCOUNT = people.RESEARCHER_ACCOUNT


def _left(workload: str, account: str = ACCOUNT, waited_s: int = 3600) -> Preempted:
    return Preempted(workload, account, "u", 0, waited_s)


def test_the_researchers_job_is_the_last_that_left_once_and_waited() -> None:
    seen = [
        _left("a"),
        _left("b"),
        _left("c"),
        _left("c"),
        _left("d", waited_s=5),
        _left("e", "institute/science/proteins"),
    ]
    ines = next(person for person in people.people(seen) if person.key == "ines")
    assert ines.page == "work?as=ines&cluster=institute&workload=b"
    assert "job b had to leave" in ines.about


def test_each_page_signs_in_its_person_and_names_the_cluster() -> None:
    for person in people.people([]):
        assert f"as={person.key}" in person.page
        assert "cluster=institute" in person.page


def test_what_is_kept_is_for_the_owners_eyes_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / people.FILE
    assert people.kept(path) == []
    people.keep(path, people.people([_left("a")]))
    assert people.kept(path) == people.people([_left("a")])
    assert path.stat().st_mode & 0o077 == 0
