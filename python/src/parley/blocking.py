"""Lets code that blocks wait for the table, such as a library with a method ``sample_text(prompt) -> str``. Needs greenlet.

    async def play(self, t):
        return await blocking.run(self.simulate, t)

    def simulate(self, t):  # not async, and may call a library that calls wait
        return blocking.wait(t.one("a", "Hello?")).text
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar, cast

from .errors import Error, Misuse

R = TypeVar("R")

_running: list[Any] = []  # the greenlets that run now, innermost last


def _greenlet() -> Any:
    try:
        return importlib.import_module("greenlet")
    except ImportError:
        raise Error("parley.blocking needs greenlet: pip install greenlet") from None


@types.coroutine
def _drive(fn: Callable[..., Any], args: tuple[Any, ...]) -> Generator[Any, Any, Any]:
    """Run a function in a greenlet of its own, and wait for what it waits for."""
    g = _greenlet().greenlet(fn)
    resume: Callable[..., Any] = g.switch
    value: tuple[Any, ...] = args
    while True:
        _running.append(g)
        try:
            out: Any = resume(*value)
        finally:
            _running.pop()
        if g.dead:
            return out
        try:
            resume, value = g.switch, (cast(Any, (yield from out.__await__())),)
        except BaseException as e:
            resume, value = g.throw, (e,)


async def run(fn: Callable[..., R], *args: Any) -> R:
    """Run a function that is not async but may call wait, and return its result."""
    return await _drive(fn, args)


def wait(awaitable: Awaitable[R]) -> R:
    """Wait for a method of a table, such as t.one(...), inside of a function that run runs, in the same thread."""
    g = _greenlet().getcurrent()
    if not _running or _running[-1] is not g:
        close = getattr(awaitable, "close", None)
        if close is not None:
            close()
        raise Misuse("blocking.wait works only in a function that blocking.run runs, and not in another thread")
    return g.parent.switch(awaitable)
