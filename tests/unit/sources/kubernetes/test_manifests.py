import json
from collections import Counter
from pathlib import Path

import pytest
import yaml
from tests.unit.sources.kubernetes.building import Object, bound, events, node, pod, told

from gpuledger.events.host import Registered
from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.protocol import Fault, ImportOptions, Translated
from gpuledger.sources.registry import source

SOURCE = source("k8s-yaml")
NODES = "openb-nodes/openb_node_list_gpu_node.yaml.gz"
RECORDS = {
    "kai/podgroup_examples.yaml": {"fragment": 1},
    "kueue/workload_status_examples.yaml": {"bad-yaml": 3, "fragment": 8},
}
"""Files that hold records; every other one of the public files is configuration, or was never submitted."""

CONFIGURATION = {
    "deepops/nvidia-mig-config.yml": "1 document without a kind",
    "kai/batch-job.yaml": "1 Job",
    "kai/default-queues.yaml": "2 Queue",
    "kai/gpu-imex-pod.yaml": "1 ComputeDomain, 1 Pod",
    "kai/gpu-memory.yaml": "1 Pod",
    "kai/gpu-pod.yaml": "1 Pod",
    "kai/gpu-sharing-with-mps.yaml": "1 Pod",
    "kai/gpu-sharing.yaml": "1 Pod",
    "kai/jobs.yaml": "2 Pod",
    "kai/limited-queue.yaml": "2 Queue",
    "kai/pytorch-job.yaml": "1 PyTorchJob",
    "kai/queues.yaml": "3 Queue",
    "kai/train-priority-pod.yaml": "1 Pod",
    "kueue/01-cluster-queues.yaml": "4 ClusterQueue",
    "kueue/02-local-queues.yaml": "3 LocalQueue",
    "kueue/provisioning-setup.yaml": "1 AdmissionCheck, 1 ClusterQueue, 1 LocalQueue, 1 ProvisioningRequestConfig,",
    "kueue/sample-gpu-queues.yaml": "1 ClusterQueue, 1 LocalQueue, 1 ResourceFlavor, 1 Topology",
    "kueue/sample-hami.yaml": "1 ClusterQueue, 1 Deployment, 1 LocalQueue, 1 Namespace, 1 ResourceFlavor",
    "kueue/sample-job.yaml": "1 Job",
    "kueue/sample-leaderworkerset-tas.yaml": "1 LeaderWorkerSet",
    "kueue/shared-quota-setup.yaml": "1 ClusterQueue, 1 LocalQueue, 3 ResourceFlavor",
    "mig-parted/nvidia-mig-manager-example.yaml": "1 ClusterRole, 1 ClusterRoleBinding, 2 ConfigMap, 1 DaemonSet,",
}


def public(repository: Path) -> Path:
    return repository / "tests/fixtures/sources/kubernetes/shared"


def items(tmp_path: Path, text: str) -> list[Translated | Fault]:
    (tmp_path / "objects.yaml").write_text(text)
    return list(SOURCE.read(tmp_path / "objects.yaml", ImportOptions()))


def dumped(*documents: Object) -> str:
    return yaml.safe_dump_all(json.loads(json.dumps(documents)))  # objects that share no part: no aliases


def test_every_public_file_is_known(repository: Path) -> None:
    folder = public(repository)
    found = {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in {".yaml", ".yml", ".gz"}
    }
    assert found == {NODES, *RECORDS, *CONFIGURATION}


@pytest.mark.parametrize("file", sorted(RECORDS))
def test_records_of_public_files_are_facts_or_faults(repository: Path, file: str) -> None:
    read = SOURCE.read(public(repository) / file, ImportOptions())
    counts = Counter(item.code if isinstance(item, Fault) else "Translated" for item in read)
    assert counts == RECORDS[file]


@pytest.mark.parametrize("file", sorted(CONFIGURATION))
def test_configuration_is_refused_and_says_what_it_is(repository: Path, file: str) -> None:
    with pytest.raises(Refused, match=f": {CONFIGURATION[file]}") as refused:
        SOURCE.read(public(repository) / file, ImportOptions())
    assert "queues and flavors" in refused.value.hint or "with their status" in refused.value.hint


def test_the_nodes_of_openb_are_the_inventory_of_its_trace(repository: Path) -> None:
    file = public(repository) / NODES
    found = events(list(SOURCE.read(file, ImportOptions())))
    hosts = [event.data for event in found if isinstance(event.data, Registered)]
    assert (len(hosts), sum(host.gpus for host in hosts)) == (1213, 6212)
    assert {event.at_s for event in found} == {0}


def test_objects_with_a_status_are_read_and_others_are_not(tmp_path: Path) -> None:
    documents = [node("n"), pod("x", 1, bound("2026-10-31T20:05:00Z")), pod("y", 1, None)]
    found = items(tmp_path, dumped(*documents))
    assert [name for name, _ in told(events(found))] == [
        "host.registered",
        "workload.submitted",
        "workload.started",
    ]


def test_members_of_a_list_are_records_of_their_own(tmp_path: Path) -> None:
    bad = pod("bad", "1.5", bound("2026-10-31T20:05:00Z"))
    listing = {"kind": "List", "items": [bad, node("n"), {"kind": "ConfigMap"}, pod("y", 1, None)]}
    fault, good = items(tmp_path, dumped(listing))
    assert isinstance(fault, Fault)
    assert isinstance(good, Translated)
    with pytest.raises(BadRecord, match="not a whole number"):
        SOURCE.retry(fault.raw, fault.context)
    assert SOURCE.retry(fault.raw.replace(b'"1.5"', b'"2"'), fault.context).events


def test_lines_are_counted_from_where_a_document_begins(tmp_path: Path) -> None:
    text = "# nodes\n---\n\nkind: Node\nmetadata: [\n--- # next\nkind: Pod\nstatus: {}\n"
    first, second = items(tmp_path, text)
    assert isinstance(first, Fault)
    assert isinstance(second, Fault)
    assert [(fault.line, fault.code) for fault in (first, second)] == [(4, "bad-yaml"), (7, "bad-field")]


@pytest.mark.parametrize(
    "document",
    [
        "kind: Node\nmetadata: &a {name: n}\nother: *a",
        "kind: Node\nmetadata: {? [1, 2] : 3}",
        "kind: Node\nmetadata: !!python/object:os.system {}",
        "kind: Node\nmetadata: " + "[" * 2000,
        "kind: Node\nmetadata: {creationTimestamp: 2026-13-01}",
        "kind: Node\nmetadata: !!bool perhaps",
        "kind: Node\nmetadata: !!timestamp soon",
        "kind: Node\nkey: 99999999999999999999999999999999999999",
        "kind: Node\nmetadata: \x01",
    ],
)
def test_what_the_api_would_not_write_is_a_fault(tmp_path: Path, document: str) -> None:
    (fault,) = items(tmp_path, document)
    assert isinstance(fault, Fault)
    assert fault.code in {"bad-yaml", "bad-field"}


def test_a_file_without_objects_is_refused(tmp_path: Path) -> None:
    for text in ("# nothing\n", "---\n---\n", "just text\n"):
        with pytest.raises(Refused):
            items(tmp_path, text)
