"""Made-up replies for tests: texts, and values that follow a JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from .rand import Rand

_WORDS = "the a of to and yes no maybe I you trade keep tell word offer deal three 42 why because".split()
ODD = ["", " ", "\n\n", "{", "null", "```json\n{}\n```", "I cannot help with that.", "ａｂｃ тест 日本語 \u202egnp", "0", "-1", "x" * 5000, "\x00\x1b[31m", "NaN"]


def text(rand: Rand) -> str:
    """Return a sentence or two."""
    return " ".join(rand.choice(_WORDS) for _ in range(3 + rand.int_n(30))).capitalize() + "."


def answer(call: Mapping[str, Any], rand: Rand, odd: int | None) -> dict[str, Any]:
    """Return a reply to a call: a sentence, or the odd text of a number. It follows the schema, as the engine checks that."""
    schema = call.get("schema")
    if schema:
        made = value(schema["schema"], rand, schema["schema"])
        return {"text": json.dumps(made), "json": made, "finish": "stop"}
    if call.get("tools") and rand.int_n(2):
        tool = cast("Mapping[str, Any]", rand.choice(cast("Sequence[Any]", call["tools"])))
        function = tool.get("function", tool)
        made = value(function.get("parameters", {"type": "object"}), rand, {})
        return {"tool_calls": [{"id": f"call{rand.int_n(1000)}", "name": function.get("name", ""), "arguments": json.dumps(made)}], "finish": "tool_calls"}
    return {"text": text(rand) if odd is None else ODD[odd % len(ODD)], "finish": "stop"}


def value(schema: Any, rand: Rand, root: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value that follows a schema, as far as keywords are common."""
    if not isinstance(schema, Mapping):
        return None
    s = cast("Mapping[str, Any]", schema)
    if "$ref" in s:
        name = str(s["$ref"]).rsplit("/", 1)[-1]
        return value({**root.get("$defs", {}).get(name, {}), **root.get("definitions", {}).get(name, {})}, rand, root, depth + 1)
    if "const" in s:
        return s["const"]
    if "enum" in s:
        return rand.choice(s["enum"])
    for key in ("anyOf", "oneOf"):
        if s.get(key):
            options = s[key] if depth < 6 else sorted(s[key], key=lambda o: o.get("type") != "null")[:1]
            return value(rand.choice(options), rand, root, depth + 1)
    if s.get("allOf"):
        merged: dict[str, Any] = {}
        for part in s["allOf"]:
            merged.update(part)
        return value(merged, rand, root, depth + 1)
    kind = s.get("type", "object" if "properties" in s else "string")
    if isinstance(kind, list):
        kind = rand.choice(cast("list[str]", kind))
    return _typed(cast(str, kind), s, rand, root, depth)


def _typed(kind: str, s: Mapping[str, Any], rand: Rand, root: Mapping[str, Any], depth: int) -> Any:
    if kind == "object":
        needed = s.get("required", [])
        properties = cast("Mapping[str, Any]", s.get("properties", {}))
        chosen = [n for n in properties if n in needed or (depth < 6 and rand.int_n(2))]
        return {n: value(properties[n], rand, root, depth + 1) for n in chosen}
    if kind == "array":
        low = s.get("minItems", 0)
        count = low if depth > 5 else low + rand.int_n(max(1, min(s.get("maxItems", low + 3), low + 3) - low + 1))
        return [value(s.get("items", {}), rand, root, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(kind, s, rand)
    if kind == "boolean":
        return rand.int_n(2) == 1
    if kind == "null":
        return None
    made = text(rand)[: s.get("maxLength", 200)]
    return made + "x" * (s.get("minLength", 0) - len(made))


def _number(kind: str, s: Mapping[str, Any], rand: Rand) -> Any:
    whole = kind == "integer"
    edge = 1 if whole else 1e-6
    low = s.get("minimum", s["exclusiveMinimum"] + edge if "exclusiveMinimum" in s else None)
    high = s.get("maximum", s["exclusiveMaximum"] - edge if "exclusiveMaximum" in s else None)
    if low is None:
        low = -1000 if high is None else high - 1000
    if high is None:
        high = low + 2000
    if rand.int_n(5) == 0:
        made = rand.choice([low, high])
    else:
        made = rand.uniform(low, high)
    step = s.get("multipleOf")
    if step:
        made = -(-low // step) * step + step * rand.int_n(max(1, int((high - low) // step)))
    return int(made) if whole else made
