"""Runs the functions of ``t.do``."""

from __future__ import annotations

import contextvars
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .errors import Misuse

_key: contextvars.ContextVar[str] = contextvars.ContextVar("parley_act_key")


def act_key() -> str:
    """Return the key of the act that runs now, for the function that ``t.do`` runs. No other act has it, of any run.

    A function may run a second time if the process was killed before its result was recorded. It then has the same key.
    """
    key = _key.get("")
    if not key:
        raise Misuse("parley.act_key() is for a function that t.do runs: call it there")
    return key


def run(key: str, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Run a function, which may be async, with a key."""
    token = _key.set(key)
    try:
        result = fn(*args, **kwargs)
        if inspect.iscoroutine(result):
            import asyncio

            result = asyncio.run(result)
        return result
    finally:
        _key.reset(token)
