"""Tools of environments: methods that a model may call."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_type_hints

from . import params
from ._json import record
from .errors import Invalid, Misuse
from .schema import json_schema

Tool = Callable[..., Any]


def describe(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Describe tools in the form of OpenAI's chat completions: name, doc string, and parameters by type hints."""
    return [{"type": "function", "function": {"name": t.__name__, "description": inspect.getdoc(t) or "", "parameters": _parameters(t)}} for t in tools]


def _parameters(tool: Tool) -> dict[str, Any]:
    hints = _hints(tool)
    known = inspect.signature(tool).parameters
    for name, p in known.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY) or name not in hints:
            raise Misuse(f"the tool {tool.__name__}: the parameter {name} needs a name and a type hint, such as {name}: str")
    needed = [name for name, p in known.items() if p.default is p.empty]
    return {"type": "object", "properties": {n: json_schema(hints[n]) for n in known}, "required": needed, "additionalProperties": False}


def _hints(tool: Tool) -> dict[str, Any]:
    try:
        return get_type_hints(tool, include_extras=True)
    except NameError as e:
        raise Misuse(f"the tool {tool.__name__}: a type hint names something unknown: {e}") from None


def arguments(tool: Tool, text: str) -> dict[str, Any]:
    """Read the arguments of a call. Raise Invalid if they do not fit, which the model is told."""
    try:
        given = json.loads(text or "{}")
    except ValueError:
        raise Invalid("arguments", "want a JSON object") from None
    if not isinstance(given, dict):
        raise Invalid("arguments", "want a JSON object")
    hints, known = _hints(tool), inspect.signature(tool).parameters
    for name in cast("dict[str, Any]", given):
        if name not in known:
            raise Invalid(name, f"there is no such argument: want {', '.join(known) or 'none'}")
    for name, p in known.items():
        if p.default is p.empty and name not in given:
            raise Invalid(name, "is missing")
    return {name: params.convert(hints[name], value, name) for name, value in cast("dict[str, Any]", given).items()}


def text_of(result: Any) -> str:
    """Return the result of a tool as the text that the model gets."""
    return result if isinstance(result, str) else record(result, "the result of a tool").decode()


def calls_of(answer: Any) -> list[Mapping[str, Any]]:
    """List the calls of an answer: a text, or a message with tool_calls."""
    return list(cast("Mapping[str, Any]", answer).get("tool_calls") or []) if isinstance(answer, Mapping) else []
