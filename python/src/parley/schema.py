"""The form of an answer: a JSON Schema, a pydantic model, a dataclass or a TypedDict."""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Union, cast, get_args, get_origin

from . import params
from ._json import record
from .errors import Misuse

T = TypeVar("T")

Schema = typing.Union[type[T], Mapping[str, Any]]


class Form(Generic[T]):
    """A schema as a call carries it, and how its answers become Python values."""

    __slots__ = ("encoded", "_read")

    def __init__(self, name: str, schema: Mapping[str, Any], read: Any) -> None:
        name = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64] or "answer"
        self.encoded = record({"name": name, "schema": schema}, f"schema {name}")
        self._read = read

    def read(self, value: Any) -> T:
        """Turn an answer, which follows the schema, into a value."""
        return self._read(value) if self._read is not None else value


_forms: dict[Any, Form[Any]] = {}


def form(schema: Schema[T]) -> Form[T]:
    """Return the form of a schema."""
    if isinstance(schema, Mapping):
        found = schema
        if isinstance(found.get("schema"), Mapping) and isinstance(found.get("name"), str):
            return Form(found["name"], found["schema"], None)
        title = found.get("title")
        return Form(title if isinstance(title, str) else "answer", found, None)
    known = _forms.get(schema)
    if known is None:
        known = _forms[schema] = _of_class(schema)
    return known


def _of_class(cls: Any) -> Form[Any]:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", getattr(cls, "__name__", "answer")).lower()
    make, read = getattr(cls, "model_json_schema", None), getattr(cls, "model_validate", None)
    if callable(make) and callable(read):
        return Form(name, _inline(cast("dict[str, Any]", make())), read)
    try:
        made = json_schema(cls)
    except RecursionError:
        raise Misuse(f"no schema can be made of {name}: it contains itself; use a JSON Schema") from None
    return Form(name, made, functools.partial(params.convert, cls, path="answer"))


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """Replace references to definitions, which some providers do not support, unless a definition contains itself."""
    defs = cast("dict[str, Any]", schema.get("$defs", {}))
    kept: set[str] = set()

    def walk(node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [walk(n, inside) for n in cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        found = cast("dict[str, Any]", node)
        name = str(found.get("$ref", "")).removeprefix("#/$defs/")
        if "$ref" in found and name in defs:
            if name in inside:
                kept.add(name)
                return dict(found)
            return {**walk(defs[name], (*inside, name)), **{k: v for k, v in found.items() if k != "$ref"}}
        out = {k: walk(v, inside) for k, v in found.items() if k != "$defs"}
        if out.get("type") == "object" and isinstance(out.get("properties"), dict):
            out.setdefault("additionalProperties", False)
        return out

    whole = walk(schema, ())
    if kept:
        whole["$defs"] = defs
    return whole


def json_schema(hint: Any) -> dict[str, Any]:
    """Make a JSON Schema of a Python type. ``Annotated`` may add a description, or keywords as a dict."""
    hint, notes = params.unwrap(hint)
    out = _bare(hint)
    for note in notes:
        if isinstance(note, str):
            out["description"] = note
        elif isinstance(note, Mapping):
            out.update(cast("Mapping[str, Any]", note))
    return out


def _bare(hint: Any) -> dict[str, Any]:
    names = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
    if isinstance(hint, type) and hint in names:
        return {"type": names[hint]}
    if hint in (Any, object):
        return {}
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(args)}
    if hint is list or origin in (list, Sequence):
        return {"type": "array", "items": json_schema(args[0]) if args else {}}
    if hint is dict or origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": json_schema(args[1]) if args else {}}
    if origin in (Union, types.UnionType):
        return {"anyOf": [json_schema(a) for a in args]}
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"enum": [m.value for m in hint]}
    if typing.is_typeddict(cast(Any, hint)):
        hints = params.hints_of(cast(type, hint))
        return _object({n: json_schema(h) for n, h in hints.items()}, sorted(cast(Any, hint).__required_keys__, key=list(hints).index))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        known = params.fields(hint)
        needed = [f.name for f in known if f.default is dataclasses.MISSING]
        return _object({f.name: {**json_schema(f.hint), **({"description": f.doc} if f.doc else {})} for f in known}, needed)
    raise Misuse(f"no schema can be made of {hint}: use a pydantic model, a dataclass, a TypedDict or a JSON Schema")


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
