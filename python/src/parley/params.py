"""Typed fields: the params of a world and the fields of a dataclass, as the protocol describes them.

One function, ``convert``, reads JSON into a Python type: the params of a plan, and the answers to a schema.
"""

from __future__ import annotations

import copy
import dataclasses
import enum
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Union, cast, get_args, get_origin, get_type_hints

from .errors import Invalid, Misuse

_MISSING: Any = dataclasses.MISSING


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a class: its name, its Python type, its default (or MISSING) and what it is for."""

    name: str
    hint: Any
    default: Any
    doc: str

    def describe(self) -> dict[str, Any]:
        """Return the field as the protocol describes it."""
        out: dict[str, Any] = {"name": self.name, "type": describe(self.hint, self.name)}
        if self.default is not _MISSING:
            out["default"] = self.default
        if self.doc:
            out["doc"] = self.doc
        return out


def unwrap(hint: Any) -> tuple[Any, list[Any]]:
    """Split ``Annotated[int, "doc"]`` into its type and the rest."""
    if getattr(get_origin(hint), "_name", "") in ("Required", "NotRequired", "ReadOnly"):  # of a TypedDict
        hint = get_args(hint)[0]
    if get_origin(hint) is Annotated:
        first, *rest = get_args(hint)
        return first, rest
    return hint, []


def optional(hint: Any) -> Any:
    """Return T of ``Optional[T]`` or ``T | None``, otherwise None."""
    if get_origin(hint) in (Union, types.UnionType):
        args = [a for a in get_args(hint) if a is not type(None)]
        if len(args) == 1 and len(get_args(hint)) == 2:
            return args[0]
    return None


def _docs(cls: type, names: Sequence[str]) -> dict[str, str]:
    """Read lines such as ``bidders: How many bid.`` from the docstring of a class."""
    found: dict[str, str] = {}
    for line in (cls.__dict__.get("__doc__") or "").splitlines():
        m = re.match(r"\s*`{0,2}(\w+)`{0,2}\s*:\s*(\S.*)", line)
        if m and m[1] in names:
            found[m[1]] = m[2].strip()
    return found


def hints_of(cls: type) -> dict[str, Any]:
    """Return the type hints of a class. An error names the class."""
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError as e:
        raise Misuse(f"class {cls.__name__}: a type hint names something unknown: {e}") from None


def fields(cls: type, base: type = object) -> list[Field]:
    """List the typed fields of a class, without those of base, in the order in which they are written."""
    skip = {n for c in base.__mro__ for n in getattr(c, "__annotations__", {})}
    hints = {n: h for n, h in hints_of(cls).items() if n not in skip and not n.startswith("_")}
    docs = _docs(cls, list(hints))
    out: list[Field] = []
    for name, hint in hints.items():
        if get_origin(unwrap(hint)[0]) is ClassVar or hint is ClassVar:
            continue
        texts = [a for a in unwrap(hint)[1] if isinstance(a, str)]
        out.append(Field(name, hint, _default(cls, name), texts[0] if texts else docs.get(name, "")))
    return out


def _default(cls: type, name: str) -> Any:
    declared: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    if name in declared:
        field = declared[name]
        return field.default if field.default_factory is _MISSING else field.default_factory()
    return getattr(cls, name, _MISSING)


def describe(hint: Any, path: str) -> Any:
    """Return a type as the protocol describes it."""
    hint, _ = unwrap(hint)
    inner = optional(hint)
    if inner is not None:
        return {"optional": describe(inner, path)}
    if hint in (int, float, str, bool):
        return hint.__name__
    if hint in (Any, object):
        return "any"
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal and all(isinstance(a, str) for a in args):
        return {"one_of": list(args)}
    if hint is list or origin in (list, Sequence):
        return {"list": describe(args[0], path) if args else "any"}
    if hint is dict or origin in (dict, Mapping):
        if args and args[0] is not str:
            raise Misuse(f"the param {path} is {hint}: the keys of a dict must be str")
        return {"map": describe(args[1], path) if args else "any"}
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return {"fields": [f.describe() for f in fields(hint)]}
    raise Misuse(
        f"the param {path} has the type {hint}: want int, float, str, bool, list, dict[str, ...], Optional, Literal of texts, Any or a dataclass"
    )


def make(cls: type, values: Mapping[str, Any], into: Any, base: type, path: str = "") -> None:
    """Set the fields of an object from values. A field that is missing and has no default is an error, as is an unknown one."""
    known = cached_fields(cls, base)
    for name in values:
        if name not in known:
            raise Invalid(path + name, f"unknown; known are {', '.join(known) or 'none'}")
    for name, field in known.items():
        if name in values:
            value = convert(field.hint, values[name], path + name)
        elif field.default is _MISSING:
            raise Invalid(path + name, "it has no default: set it")
        else:
            value = field.default
            if not isinstance(value, (int, float, str, bool, type(None))):
                value = copy.deepcopy(value)
        setattr(into, name, value)


_cache: dict[tuple[type, type], dict[str, Field]] = {}


def cached_fields(cls: type, base: type = object) -> dict[str, Field]:
    """Return the fields of a class by name."""
    known = _cache.get((cls, base))
    if known is None:
        known = _cache[cls, base] = {f.name: f for f in fields(cls, base)}
    return known


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def convert(hint: Any, value: Any, path: str) -> Any:
    """Read a JSON value as a type. An error is an Invalid that names the path."""
    hint, _ = unwrap(hint)
    simple = _SIMPLE.get(hint) if isinstance(hint, type) else None
    if simple is not None:
        return simple(value, path)
    inner = optional(hint)
    if inner is not None:
        return None if value is None else convert(inner, value, path)
    if hint in (Any, object):
        return value
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value in args and type(value) in {type(a) for a in args}:
            return value
        raise Invalid(path, f"{_shown(value)}: want one of {', '.join(map(str, args))}")
    if hint is list or origin in (list, Sequence):
        if value is not None and not isinstance(value, list):  # null is an empty list, as in Go
            raise Invalid(path, f"{_shown(value)}: want a list")
        items = cast("list[Any]", value or [])
        return [convert(args[0] if args else Any, v, f"{path}[{i}]") for i, v in enumerate(items)]
    if hint is dict or origin in (dict, Mapping):
        value = {} if value is None else value
        return {k: convert(args[1] if args else Any, v, f"{path}.{k}") for k, v in _mapping(value, path).items()}
    return _class(hint, value, path)


def _mapping(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Invalid(path, f"{_shown(value)}: want keys with values")
    return cast("dict[str, Any]", value)


def _class(hint: Any, value: Any, path: str) -> Any:
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        try:
            return hint(value)
        except ValueError:
            raise Invalid(path, f"{_shown(value)}: want one of {', '.join(str(m.value) for m in hint)}") from None
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        values, known = _mapping(value, path), cached_fields(hint)
        for name in values:
            if name not in known:
                raise Invalid(f"{path}.{name}", f"unknown; known are {', '.join(known)}")
        for name, field in known.items():
            if name not in values and field.default is _MISSING:
                raise Invalid(f"{path}.{name}", "it has no default: set it")
        return hint(**{n: convert(known[n].hint, v, f"{path}.{n}") for n, v in values.items()})
    if typing.is_typeddict(cast(Any, hint)):
        hints = hints_of(cast(type, hint))
        values = _mapping(value, path)
        return {n: convert(hints.get(n, Any), v, f"{path}.{n}") for n, v in values.items()}
    if get_origin(hint) in (Union, types.UnionType):
        for option in get_args(hint):
            try:
                return None if option is type(None) and value is None else convert(option, value, path)
            except Invalid:
                continue
        raise Invalid(path, f"{_shown(value)}: it fits none of {hint}")
    raise Invalid(path, f"its type {hint} is not supported")


def _int(value: Any, path: str) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Invalid(path, f"{_shown(value)}: want a whole number")
    return value


def _float(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Invalid(path, f"{_shown(value)}: want a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise Invalid(path, f"{_shown(value)}: want a finite number")
    return number


def _str(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise Invalid(path, f"{_shown(value)}: want a text")
    return value


def _bool(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise Invalid(path, f"{_shown(value)}: want true or false")
    return value


_SIMPLE: dict[type, Any] = {int: _int, float: _float, str: _str, bool: _bool}
