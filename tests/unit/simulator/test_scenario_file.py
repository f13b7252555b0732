"""Scenario files: found, read, and refused with file and place."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

import pytest

from gpuledger.kernel.clock import seconds
from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.knobs import PolicyConfig
from gpuledger.simulator.scenario import AccountSpec, FaultModel, Groups, Scenario
from gpuledger.simulator.scenario_file import SHIPPED, read_scenario, scenario_names

PHILLY = "demand: {trace: philly}"
SMALL = """
cluster: {hosts: 2}
accounts:
  org/a: {share: 3}
demand:
  jobs:
    - {job: probe, account: org/a, work_s: 60}
"""


def read(tmp_path: Path, text: str, name: str = "mine.yaml") -> Scenario:
    (tmp_path / name).write_text(text)
    return read_scenario(str(tmp_path / name))


def test_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    found = read(tmp_path, SMALL)
    assert (found.name, found.cluster, found.days, found.warm_up_days) == ("mine", "mine", 30, 7)
    assert (found.seed, found.cycle_s, found.groups, found.worlds) == (1, 60, Groups(), {})
    assert (found.faults, found.policy, found.notes) == (FaultModel(), PolicyConfig(), ())
    assert found.start_s == seconds(dt.datetime(2026, 1, 5, tzinfo=dt.UTC))
    assert [(host.host, host.gpus_milli, host.gpu_model, host.rack) for host in found.hosts] == [
        ("mine-0001", 8000, "h100", "rack-01"), ("mine-0002", 8000, "h100", "rack-01"),
    ]  # fmt: skip
    assert found.accounts == (AccountSpec(account="org/a", share=3), AccountSpec(account="org", share=1))
    assert [job.job for job in found.demand(1).first()] == ["probe-1"]


def test_a_model_that_a_job_insists_on_is_that_of_the_hosts_in_any_case_of_letters(tmp_path: Path) -> None:
    found = read(tmp_path, SMALL.replace("work_s: 60", "work_s: 60, gpu_model: H100"))
    assert [job.gpu_model for job in found.demand(1).first()] == [found.hosts[0].gpu_model] == ["h100"]


def test_everything_can_be_said(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
name: said
cluster: {name: c, hosts: 4, gpus_per_host: 4, model: a100, racks: 2, more: [{hosts: 1, gpus_per_host: 2, model: b}]}
start: 2026-03-01
days: 3
warm_up_days: 0
seed: 9
accounts: {a: {share: 2, team_limit_gpus: 6}}
demand: {jobs: [{job: probe, account: a, work_s: 60}]}
faults: {mtbf_days: 0.5, repair_hours: 1.5, drain_mtbf_days: 2, drain_repair_hours: 3}
policy: {grace_s: 30, mode: half-life, notice_s: null}
cycle_s: 120
groups: {medium_gpus: 2, large_gpus: 4}
worlds: {old: {learning: 3}}
""",
    )
    assert (found.name, found.cluster, found.days, found.warm_up_days, found.seed) == ("said", "c", 3, 0, 9)
    assert [(host.host, host.gpus_milli, host.gpu_model, host.rack) for host in found.hosts] == [
        ("c-0001", 4000, "a100", "rack-01"),
        ("c-0002", 4000, "a100", "rack-01"),
        ("c-0003", 4000, "a100", "rack-02"),
        ("c-0004", 4000, "a100", "rack-02"),
        ("c-0005", 2000, "b", "rack-03"),
    ]
    assert found.accounts == (AccountSpec(account="a", share=2, team_limit_milli=6000),)
    assert found.faults == FaultModel(
        mtbf_s=43_200, repair_s=5_400, drain_mtbf_s=172_800, drain_repair_s=10_800
    )
    assert found.policy == PolicyConfig(grace_s=30, mode="half-life")
    assert (found.cycle_s, found.groups) == (120, Groups(medium_milli=2000, large_milli=4000))
    assert found.worlds == {"old": {"learning": 3}}
    assert found.start_s == seconds(dt.datetime(2026, 3, 1, tzinfo=dt.UTC))


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("cluster: {host: 3}\n" + PHILLY, "cluster.host is no key; did you mean hosts?", "docs/scenarios.md"),
        ("dayz: 3\n" + PHILLY, "dayz is no key; did you mean days?", "docs/scenarios.md"),
        ("cluster: {hosts: x}\n" + PHILLY, "cluster.hosts: Input should be a valid integer", "lists every key"),
        ("days: 1\ndays: 2", "'days' stands twice at line 2", "docs/scenarios.md"),
        ("- 1", "file: Input should be a valid dictionary", "lists every key"),
        (SMALL.replace("{hosts: 2}", "{}"), "cluster.hosts: is missing", "write how many hosts"),
        (SMALL + "policy: {quantum_s: 90000}", "exceeds the protection cap", "neither may be longer"),
        (SMALL.replace("  org/a:", "  Org/A:"), "account path 'Org/A' is not well formed", "lower-case"),
        (
            SMALL.replace("{hosts: 2}", "{hosts: 2, more: [{hosts: 1}, {model: a100}]}"),
            "cluster.more.1.hosts: is missing",
            "write how many hosts",
        ),
        ("cluster: {more: [{hosts: 1}]}\ndemand: {trace: openb}", "cluster.hosts: is missing", "write how many"),
        ("demand: {trace: swf}", "demand.path: no trace of swf comes with gpuledger", "write the path"),
        ("demand: {trace: swf, path: none.swf}", "none.swf", "check the path"),
        ("extends: institut\n", "extends: there is no scenario institut", "did you mean institute?"),
        ("extends: mine.yaml\n" + SMALL, "and that comes back to it", "not itself"),
    ],
)  # fmt: skip
def test_a_fault_names_the_file_and_the_place(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(Refused) as caught:
        read(tmp_path, text)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert str(tmp_path / "mine.yaml") in caught.value.message


def test_a_scenario_that_there_is_not_brings_the_list_of_those_that_there_are() -> None:
    with pytest.raises(NotFound, match="there is no scenario nonsense") as caught:
        read_scenario("nonsense")
    assert "fragmentation, institute, institute-256, institute-88, lesson, openb, philly" in caught.value.hint


def test_a_file_that_there_is_not_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        read_scenario(str(tmp_path / "none.yaml"))


def test_how_often_sizes_are_drawn_is_said_anew_as_a_whole(tmp_path: Path) -> None:
    sizes = "demand: {closed_loop: {mix: {debug: {gpus: {1: 4, 2: 1}}}}}"
    found = read(tmp_path, f"extends: institute\n{sizes}\n")
    asked = {job.gpus_milli for job in found.demand(1).first() if job.kind == "debug"}
    assert asked == {1000, 2000}


def test_a_scenario_extends_another_key_by_key(tmp_path: Path) -> None:
    read(tmp_path, SMALL + "policy: {grace_s: 30, quantum_s: 600}\ndays: 3\n", "base.yaml")
    (tmp_path / "deeper").mkdir()
    found = read(
        tmp_path,
        "extends: ../base.yaml\nname: over\npolicy: {grace_s: null, window_s: 86400}\n"
        "cluster: {hosts: 3}\naccounts: {org/b: {share: 5}}\n",
        "deeper/mine.yaml",
    )
    assert (found.name, found.days, len(found.hosts)) == ("over", 3, 3)
    assert found.policy == PolicyConfig(quantum_s=600, window_s=86_400)
    assert {spec.account: spec.share for spec in found.accounts} == {"org/a": 3, "org/b": 5, "org": 1}


LOG = "1 0 0 60 1 -1 -1 1 90 -1 1 1 1 -1 1 -1 -1 -1\n2 180000 0 60 1 -1 -1 1 90 -1 1 1 1 -1 1 -1 -1 -1\n"
"""Two jobs, 50 hours apart."""


def test_a_trace_lies_where_the_file_that_names_it_says(tmp_path: Path) -> None:
    base, mine = tmp_path / "base", tmp_path / "mine"
    base.mkdir()
    mine.mkdir()
    (base / "log.swf").write_text(LOG)
    (base / "base.yaml").write_text("cluster: {hosts: 1}\ndemand: {trace: swf, path: log.swf}")
    found = read(mine, "extends: ../base/base.yaml\ncluster: {hosts: 2}")
    assert len(list(found.demand(1).first())) == 2
    (mine / "own.swf").write_text(LOG.splitlines()[0])
    own = read(mine, "extends: ../base/base.yaml\ndemand: {path: [own.swf]}", "own.yaml")
    assert len(list(own.demand(1).first())) == 1


def test_days_of_a_trace_count_from_the_beginning_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(LOG)
    text = "cluster: {hosts: 1}\ndemand: {trace: swf, path: log.swf}\n"
    whole = read(tmp_path, text)
    assert whole.days == 3
    begins = dt.datetime.fromtimestamp(whole.start_s, dt.UTC).date()
    later = read(tmp_path, f"{text}start: {begins + dt.timedelta(days=2)}", "later.yaml")
    assert (later.days, later.start_s - whole.start_s) == (1, 2 * 86_400)
    assert len(list(later.demand(1).first())) == 1
    after = read(tmp_path, f"{text}start: {begins + dt.timedelta(days=9)}", "after.yaml")
    assert after.days == 1


def test_null_takes_an_account_of_the_other_scenario_away(tmp_path: Path) -> None:
    read(tmp_path, SMALL.replace("org/a: {share: 3}", "org/a: {share: 3}\n  org/b: {share: 5}"), "base.yaml")
    found = read(tmp_path, "extends: base.yaml\naccounts: {org/b: null}\n")
    assert "org/b" not in {spec.account for spec in found.accounts}


def test_the_shipped_scenarios_can_all_be_read() -> None:
    assert {"institute", "lesson"} <= set(scenario_names())
    for name in scenario_names():
        found = read_scenario(name)
        assert found.name == name
        assert next(iter(found.demand(1).first())).submitted_s >= found.start_s


def test_the_institute_is_as_described() -> None:
    """DESIGN: 1 024 GPUs, 15 team allocations of unequal shares, 150 users, demand 2-3 x supply."""
    institute = read_scenario("institute")
    assert sum(host.gpus_milli for host in institute.hosts) == 1_024_000
    assert {host.gpus_milli for host in institute.hosts} == {8_000}
    teams = {spec.account: spec.share for spec in institute.accounts if "/" in spec.account}
    programs = {spec.account: spec.share for spec in institute.accounts if "/" not in spec.account}
    assert len(teams) == 15
    assert sum(teams.values()) == 100
    for program, share in programs.items():
        assert share == sum(part for path, part in teams.items() if path.startswith(program + "/"))
    jobs = list(institute.demand(1).first())
    assert len({job.user for job in jobs}) == 150
    assert {job.account for job in jobs} == teams.keys()
    stock = sum(job.gpus_milli for job in jobs if job.kind == "train")
    assert 2.3 < stock / 1_024_000 < 2.8
    debug = [job for job in jobs if job.kind == "debug"]
    assert debug
    assert all(0 < job.minimum_runtime_s <= 900 and job.gpus_milli <= 8_000 for job in debug)
    assert any(job.idle_s for job in jobs if job.kind == "interactive")
    gangs = {
        job.gpus_milli
        for seed in range(5)
        for job in institute.demand(seed).first()
        if job.gpus_milli > 8_000
    }
    assert all(milli % 8_000 == 0 for milli in gangs)
    assert max(gangs) > institute.groups.large_milli


def test_clusters_of_the_institute_are_from_88_to_1024_gpus() -> None:
    gpus = {
        name: sum(host.gpus_milli for host in read_scenario(name).hosts) // 1000
        for name in ("institute-88", "institute-256", "institute")
    }
    assert gpus == {"institute-88": 88, "institute-256": 256, "institute": 1024}


def test_the_lesson_is_four_teams_that_ask_for_sixty_of_a_hundred_gpus() -> None:
    lesson = read_scenario("lesson")
    assert sum(host.gpus_milli for host in lesson.hosts) == 100_000
    assert {spec.account: spec.share for spec in lesson.accounts} == {
        "vision": 40, "speech": 30, "robots": 20, "theory": 10,
    }  # fmt: skip
    for seed in range(3):
        asked = dict.fromkeys(("vision", "speech", "robots", "theory"), 0)
        for job in lesson.demand(seed).first():
            asked[job.account] += job.gpus_milli
        assert all(abs(milli - 60_000) <= 8_000 for milli in asked.values())


def test_another_budget_changes_nothing_that_people_ask_for(tmp_path: Path) -> None:
    other = read(
        tmp_path, "extends: institute\naccounts: {vision: {share: 60}, language/speech: {share: 9}}\n"
    )
    institute = read_scenario("institute")
    assert other.accounts != institute.accounts
    assert list(other.demand(3).first()) == list(institute.demand(3).first())


def test_philly_is_the_whole_trace_on_the_published_cluster() -> None:
    philly = read_scenario("philly")
    assert sum(host.gpus_milli for host in philly.hosts) == 2_490_000
    assert (philly.days, philly.warm_up_days) == (110, 0)
    assert philly.start_s == seconds(dt.datetime(2017, 9, 4, tzinfo=dt.UTC))
    leaves = [spec for spec in philly.accounts if "/" in spec.account]
    assert len(leaves) == 15
    assert AccountSpec(account="philly/23dbec", share=1) in leaves  # no node is told of it


def test_openb_runs_on_its_own_hosts_and_tells_what_is_left_out() -> None:
    openb = read_scenario("openb")
    assert sum(host.gpus_milli for host in openb.hosts) == 6_212_000
    assert [note.partition(":")[0] for note in openb.notes] == ["left out", "left out"]


def test_the_shipped_scenarios_are_in_the_wheel_s_package() -> None:
    assert SHIPPED.parent.name == "simulator"
    assert (SHIPPED / "institute.yaml").is_file()


def test_a_scenario_can_be_shortened(tmp_path: Path) -> None:
    found = replace(read(tmp_path, SMALL), days=2)
    assert found.end_s == found.start_s + 9 * 86_400
