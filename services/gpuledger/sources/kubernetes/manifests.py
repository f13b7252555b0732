"""Source ``k8s-yaml``: objects as YAML, one document or many in a file.

Nodes say what is installed. Pods, Workloads and PodGroups with a status are read like states of a watch stream. A
manifest without one was not submitted yet, and queues or flavors say how GPUs may be shared: neither is a record.
A file that holds nothing else is refused as configuration.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpuledger.kernel.errors import BadRecord, Refused
from gpuledger.sources.files import path_text
from gpuledger.sources.kubernetes.watching import CONFIGURATION, Watched
from gpuledger.sources.lines import BYTE_ORDER_MARK, LINE_LIMIT_BYTES, Broken, Line, read_whole
from gpuledger.sources.pieces import Facts, PieceSource, interpret
from gpuledger.sources.protocol import Fault, ImportOptions, Translated

_BREAK = re.compile(rb"^---(?:[ \t].*)?\r?$", re.MULTILINE)
_KIND = re.compile(rb"""^kind:[ \t]*["']?(?P<kind>[A-Za-z]+)["']?[ \t]*(?:#.*)?\r?$""", re.MULTILINE)
_STATUS = re.compile(rb"^status:", re.MULTILINE)
_ITEMS = re.compile(rb"^items:", re.MULTILINE)
_ALIAS = re.compile(rb"(?:^|[\s\[{,])\*\w")
_COMMENT = re.compile(rb"^\s*(?:#.*)?$")

_ALWAYS = frozenset(("Node", "ResourceSlice"))
_WITH_STATUS = frozenset(("Pod", "PodGroup", "ResourceClaim", "Workload"))
_LIST = "List"


class _Documents(Watched):
    """Understands a YAML document that is one object; JSON is YAML too."""

    def translate(self, raw: bytes) -> Facts:
        return super().translate(_as_json(_load(raw)))

    def remember(self, raw: bytes) -> dict[str, object]:
        try:
            return super().remember(_as_json(_load(raw)))
        except BadRecord:
            return {}


def _records(path: Path) -> list[Line | Broken]:
    """Return the documents that are records, or should be.

    Raises:
        Refused: When the file cannot be read, or holds none.
    """
    text, size = read_whole(path)
    records: list[Line | Broken] = []
    others: Counter[str] = Counter()
    for number, document in _documents(text.removeprefix(BYTE_ORDER_MARK)):
        found = _KIND.search(document)
        kind = found["kind"].decode() if found else ""
        if kind.endswith(_LIST) and _ITEMS.search(document):
            records += _members(number, document, kind.removesuffix(_LIST), size)
        elif _is_record(kind, has_status=_STATUS.search(document) is not None):
            records.append(_piece(number, document, size))
        else:
            others[kind or "document without a kind"] += 1
    if not records:
        raise Refused(f"{path_text(path)}: {_why(others)}", hint=_hint(others))
    return records


def _documents(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each document and the line on which it begins; those of comments alone are none."""
    start = 0
    for end, after in [
        *((match.start(), match.end()) for match in _BREAK.finditer(text)),
        (len(text), len(text)),
    ]:
        document = text[start:end]
        if not all(_COMMENT.match(line) for line in document.split(b"\n")):
            skipped = len(document) - len(document.lstrip())
            yield 1 + text.count(b"\n", 0, start + skipped), document.strip()
        start = after


def _is_record(kind: str, *, has_status: bool) -> bool:
    return kind in _ALWAYS or (has_status and (not kind or kind in _WITH_STATUS))


def _piece(number: int, document: bytes, size: int) -> Line | Broken:
    if len(document) <= LINE_LIMIT_BYTES:
        return Line(number, document, size, ended=True)
    return Broken(
        number=number,
        code="line-too-long",
        message=f"line {number}: the object has {len(document)} bytes, over {LINE_LIMIT_BYTES}",
        hint="no object is that large; look for a missing --- line",
        raw=document[:LINE_LIMIT_BYTES],
        position=size,
        partial=False,
    )


def _members(number: int, document: bytes, kind: str, size: int) -> Iterator[Line | Broken]:
    """Yield the members of a list that are records, each as JSON: one that is wrong does not take the others along."""
    try:
        value = _load(document)
        items = value.get("items") if isinstance(value, dict) else None
        for item in items if isinstance(items, list) else ():
            own = item.get("kind", kind) if isinstance(item, dict) else ""
            if _is_record(str(own), has_status=isinstance(item, dict) and "status" in item):
                yield _piece(number, _as_json({"kind": own, **item}), size)
    except BadRecord:
        yield _piece(number, document, size)  # it is read again, and found to be wrong


def _load(raw: bytes) -> Any:  # noqa: ANN401 - whatever stands there
    try:
        if _ALIAS.search(raw) and any(
            isinstance(event, yaml.AliasEvent) for event in yaml.parse(raw, yaml.CSafeLoader)
        ):
            raise BadRecord(
                "an alias (*name) stands for another part of the document; the API writes none",
                code="bad-yaml",
                hint="write it out",
            )
        return yaml.load(raw, yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        said = " ".join(str(error).replace('in "<byte string>", ', "at ").split())
        raise BadRecord(
            f"not YAML: {said}",
            code="bad-yaml",
            hint="fragments with ... or <...> in place of what was left out are no objects",
        ) from error


def _as_json(value: object) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.EncodeError) as error:
        raise BadRecord(
            f"not an object as the API writes it: {error}", code="bad-yaml", hint="keys are plain strings"
        ) from error


def _why(others: Counter[str]) -> str:
    """Say what the file holds in place of records."""
    if not others:
        return "holds no Kubernetes object"
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    return f"holds no records, but configuration or manifests that were not submitted: {listed}"


def _hint(others: Counter[str]) -> str:
    if others and CONFIGURATION.issuperset(others):
        return "queues and flavors are no usage; import the Workloads and Pods that ran (kubectl get -o yaml)"
    return "import objects with their status (kubectl get -o yaml), or Nodes for the inventory"


class Manifests(PieceSource):
    """Source ``k8s-yaml``."""

    name = "k8s-yaml"
    interpreter = _Documents

    def read(self, path: Path, options: ImportOptions) -> Iterator[Translated | Fault]:
        """Yield every object that tells of GPUs, and every fragment as a fault; see ``Source.read``."""
        interpreter = _Documents(options)
        return interpret(path, _records(path), interpreter)
