"""Params and schemas: what types become, and what JSON becomes."""

from __future__ import annotations

import enum
import importlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, Optional, TypedDict, Union

import pytest

import parley
from parley import params
from parley.schema import form, json_schema


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Inner:
    """Inside. n: How many."""

    n: int
    tags: list[str] = field(default_factory=lambda: ["x"])


class Typed(TypedDict):
    a: int
    b: Optional[str]


@dataclass
class Tree:
    below: list[Tree]


OBJECT = {"type": "object", "additionalProperties": False}

SCHEMAS: list[tuple[Any, Any]] = [
    (int, {"type": "integer"}),
    (Annotated[float, "Why.", {"minimum": 0}], {"type": "number", "description": "Why.", "minimum": 0}),
    (list[str], {"type": "array", "items": {"type": "string"}}),
    (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Literal["a", 1], {"enum": ["a", 1]}),
    (Mood, {"enum": ["good", "bad"]}),
    (Any, {}),
    (Typed, {**OBJECT, "properties": {"a": {"type": "integer"}, "b": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "required": ["a", "b"]}),
    (Inner, {**OBJECT, "properties": {"n": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["n"]}),
]


@pytest.mark.parametrize(("hint", "want"), SCHEMAS, ids=[str(h) for h, _ in SCHEMAS])
def test_schemas(hint: Any, want: Any) -> None:
    assert json_schema(hint) == want


def test_forms() -> None:
    assert form(Inner).read({"n": 3}) == Inner(3, ["x"])
    assert form(Typed).read({"a": 1, "b": None}) == {"a": 1, "b": None}
    assert form({"type": "integer", "title": "My answer!"}).encoded == b'{"name":"My_answer_","schema":{"type":"integer","title":"My answer!"}}'
    assert form({"name": "x", "schema": {"type": "integer"}}).encoded == b'{"name":"x","schema":{"type":"integer"}}'
    with pytest.raises(parley.Misuse, match="it contains itself"):
        form(Tree)
    with pytest.raises(parley.Misuse, match="no schema can be made of"):
        form(Union[int, set])  # type: ignore[arg-type]


CONVERTED: list[tuple[Any, Any, Any]] = [
    (int, 3, 3), (int, 3.0, 3), (float, 3, 3.0), (Optional[int], None, None), (list[int], [1, 2], [1, 2]), (list[int], None, []),
    (dict[str, Inner], {"a": {"n": 1}}, {"a": Inner(1)}), (Mood, "bad", Mood.BAD), (Literal["a", "b"], "b", "b"), (Any, [1, None], [1, None]),
    (Union[int, str], "x", "x"), (Annotated[int, "doc"], 2**70, 2**70),
]  # fmt: skip

REFUSED: list[tuple[Any, Any, str]] = [
    (int, True, "p: True: want a whole number"), (int, 3.5, "p: 3.5: want a whole number"), (int, "3", "want a whole number"),
    (float, "x", "want a number"), (float, 10**400, "want a finite number"), (float, float("nan"), "want a finite number"), (str, 1, "want a text"),
    (bool, 1, "want true or false"), (list[int], {}, "want a list"), (list[int], [1, "x"], "p[1]: 'x': want a whole number"), (dict[str, int], [], "want keys with values"),
    (Inner, {"n": 1, "m": 2}, "p.m: unknown; known are n, tags"), (Inner, {}, "p.n: it has no default: set it"), (Mood, "fine", "want one of good, bad"),
    (Literal["a"], "b", "want one of a"), (Literal[1], True, "want one of 1"), (Union[int, str], [], "it fits none of"), (str, 1e999, "p: inf"), (str, list(range(99)), "…"),
]  # fmt: skip


@pytest.mark.parametrize(("hint", "value", "want"), CONVERTED)
def test_converted(hint: Any, value: Any, want: Any) -> None:
    got = params.convert(hint, value, "p")
    assert got == want and type(got) is type(want)


@pytest.mark.parametrize(("hint", "value", "want"), REFUSED)
def test_refused(hint: Any, value: Any, want: str) -> None:
    with pytest.raises(parley.Invalid) as e:
        params.convert(hint, value, "p")
    assert want in str(e.value)


class Base(parley.World):
    first: int = 1
    kept: ClassVar[int] = 3
    _hidden: int = 4


class Derived(Base):
    """Doc.

    second: From the docstring.
    """

    second: list[int] = [1]
    inner: Inner = Inner(2)


def test_fields_of_worlds() -> None:
    made = [f.describe() for f in params.cached_fields(Derived, parley.World).values()]
    assert [m["name"] for m in made] == ["first", "second", "inner"] and made[1]["doc"] == "From the docstring."
    a, b = Derived(), Derived(first=2)
    a.second.append(5)
    assert b.second == [1] and b.first == 2 and Derived.second == [1] and a.inner is not Derived.inner
    with pytest.raises(parley.Invalid, match="frist: unknown; known are first, second, inner"):
        Derived(frist=1)


def test_pydantic() -> None:
    pydantic = importlib.import_module("pydantic") if importlib.util.find_spec("pydantic") else pytest.skip("pydantic is not installed")
    Part = pydantic.create_model("Part", n=(int, ...))
    Bid = pydantic.create_model("BigBid", bid=(int, pydantic.Field(ge=0)), part=(Part, ...), parts=(list[Part], []))
    made = form(Bid)
    got = json.loads(made.encoded)
    assert got["name"] == "big_bid" and "$defs" not in got["schema"] and got["schema"]["additionalProperties"] is False
    assert got["schema"]["properties"]["part"]["properties"]["n"]["type"] == "integer"
    assert got["schema"]["properties"]["parts"]["items"]["additionalProperties"] is False
    value = made.read({"bid": 3, "part": {"n": 1}, "parts": [{"n": 2}]})
    assert isinstance(value, Bid) and value.parts[0].n == 2
    reply: parley.Reply[Any] = parley.Reply({"json": {"bid": 1, "part": {"n": 1}}}, made)
    assert reply.value.bid == 1 and parley.Reply({"failed": "timeout"}, made).value is None


def test_pydantic_that_contains_itself() -> None:
    if importlib.util.find_spec("pydantic") is None:
        pytest.skip("pydantic is not installed")
    space: dict[str, Any] = {}
    exec("import pydantic\nclass Node(pydantic.BaseModel):\n    n: int\n    below: 'list[Node]' = []\n", space)  # noqa: S102
    got = json.loads(form(space["Node"]).encoded)["schema"]
    assert got["$defs"]["Node"] and "$ref" in json.dumps(got)
