"""YAML files that people write, read strictly: an unknown key, or one that stands twice, is an error with its place."""

from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args, get_origin

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from gpuledger.kernel.errors import NotFound, Refused
from gpuledger.kernel.knobs import check
from gpuledger.kernel.near import did_you_mean

Model = TypeVar("Model", bound=BaseModel)


def _known(settings: object) -> object:
    """Check settings as they are written: true is no number, and 1.0 is none either."""
    for name, value in settings.items() if isinstance(settings, dict) else ():
        try:
            check(str(name), value)
        except Refused as error:
            raise ValueError(f"{error.message}; {error.hint}") from error
    return settings


Settings = Annotated[dict[str, int | str | None], BeforeValidator(_known)]
"""Knobs of the policy, each known and within its range; None takes back what was set."""

Word = Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[^\x00-\x1f\x7f]+$")]
"""A name: present, of a sane length, without control characters."""

ClusterName = Annotated[
    str, Field(min_length=1, max_length=1024, pattern=r"^[^~\x00-\x1f\x7f][^\x00-\x1f\x7f]*$")
]
"""A cluster; names that begin with ~ are the ledger's own."""


_SAID = {"tuple_type": "Input should be a valid list"}
"""Kinds of fault -> how they are told to people who write YAML, which knows no tuples."""

_NEAR = 0.7
"""How much of a wrong key has to be as in the key that is suggested: ``colour`` is not meant to be ``cluster``."""


class Strict(BaseModel):
    """A mapping whose keys are all known, and whose numbers are numbers: ``true`` is not 1."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _numbers(cls, value: Any, of: ValidationInfo) -> Any:  # noqa: ANN401 - whatever stands in the file
        kinds = _kinds(cls.model_fields[of.field_name].annotation) if of.field_name else set()
        if kinds & {int, Decimal} and not kinds & {bool, str} and _has_truth(value):
            raise ValueError("true and false are no numbers")
        return value


def read_yaml(path: Path, model: type[Model], docs: str) -> Model:
    """Read a file as the model says; an empty file is an empty mapping.

    Args:
        path: The file.
        model: What it must be.
        docs: The page that describes it.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML, or a key or value does not fit; names each place.
    """
    return validated(path, load_yaml(path, docs), model, docs)


def load_yaml(path: Path, docs: str) -> Any:  # noqa: ANN401 - whatever stands in the file
    """Return what stands in a file, not validated; an empty file is an empty mapping.

    Raises:
        NotFound: When there is no such file.
        Refused: When it is not YAML; says where.
    """
    try:
        raw: Any = yaml.load(path.read_text(), _Loader)  # noqa: S506 - a SafeLoader
    except (FileNotFoundError, IsADirectoryError) as error:
        what = "is a folder" if path.is_dir() else "no such file"
        raise NotFound(f"{path}: {what}", hint=f"name a YAML file; {docs} shows one") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        said = " ".join(str(error).replace('in "<unicode string>", ', "at ").split())
        raise Refused(f"{path}: is not YAML: {said}", hint=f"{docs} shows one that is") from error
    except RecursionError as error:
        raise Refused(f"{path}: is nested too deep", hint=f"{docs} shows a file that is not") from error
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}", hint="check its permissions") from error
    return {} if raw is None else raw


def validated(path: Path, raw: Any, model: type[Model], docs: str) -> Model:  # noqa: ANN401 - as loaded
    """Return what stood in a file as the model says.

    Raises:
        Refused: When a key or value does not fit; names each place.
    """
    try:
        return model.model_validate(raw, strict=False)
    except ValidationError as error:
        faults = "; ".join(
            _fault(model, fault["loc"], fault["type"], fault["msg"]) for fault in error.errors()
        )
        raise Refused(f"{path}: {faults}", hint=f"{docs} lists every key") from error


def _fault(model: type[BaseModel], way: tuple[int | str, ...], kind: str, said: str) -> str:
    """Return a fault with its place; of a key that is not known, one that looks like it, or those that there are."""
    place = ".".join(map(str, way)) or "file"
    if kind != "extra_forbidden":
        return f"{place}: {_SAID.get(kind, said.removeprefix('Value error, '))}"
    known = _keys(model, way[:-1])
    hint = did_you_mean(str(way[-1]), known, f"there are {', '.join(known)}", likeness=_NEAR)
    return f"{place} is no key; {hint}"


def _keys(model: type[BaseModel], way: Iterable[int | str]) -> list[str]:
    """Return the keys that there are at a place of a file; names and numbers in between lead on to the same."""
    models = [model]
    for part in way:
        within = [
            inner
            for one in models
            for name, field in one.model_fields.items()
            if part in (name, field.alias)
            for inner in _models(field.annotation)
        ]
        models = within or models
    return list(
        dict.fromkeys(field.alias or name for one in models for name, field in one.model_fields.items())
    )


def _kinds(kind: Any) -> set[Any]:  # noqa: ANN401 - any annotation
    """Return the types of values that an annotation is made of: of a mapping, those that names stand for."""
    if parts := get_args(kind):
        return {
            found for part in (parts[1:] if get_origin(kind) is dict else parts) for found in _kinds(part)
        }
    return {kind} if isinstance(kind, type) else set()


def _has_truth(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_truth, (*value.keys(), *value.values())))
    return any(map(_has_truth, value)) if isinstance(value, list) else isinstance(value, bool)


def _models(kind: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any annotation
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return [kind]
    return [model for part in get_args(kind) for model in _models(part)]


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, of which YAML would silently take the last, and names where a value is none."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        """Return what a node stands for; a date of the 13th month stands for nothing."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError, OverflowError) as error:
            kind = node.tag.rpartition(":")[2]
            raise yaml.constructor.ConstructorError(
                None, None, f"{node.value!r} is no {kind}", node.start_mark
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        """Return the mapping of a node whose keys are all different."""
        seen: set[Any] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value!r} stands twice", key.start_mark
                )
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else key)
        return super().construct_mapping(node, deep=deep)
