"""Parley: write a world in Python, play it on the Go engine, and read its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import Error, Failed, Impure, Invalid, Misuse
from .rand import Rand
from .world import Call, Measure, Message, Outcome, Reply, Score, Table, Talk, World

if TYPE_CHECKING:
    from ._ask import Answer, ask, map
    from ._read import Run, open
    from ._run import Summary, run

__version__ = "0.1.0"

__all__ = [
    "Answer", "Call", "Error", "Failed", "Impure", "Invalid", "Measure", "Message", "Misuse", "Outcome", "Rand", "Reply", "Run", "Score",
    "Summary", "Table", "Talk", "World", "ask", "map", "open", "run",
]  # fmt: skip

_LATER = {"Answer": "_ask", "ask": "_ask", "map": "_ask", "Run": "_read", "open": "_read", "Summary": "_run", "run": "_run"}


def __getattr__(name: str) -> Any:
    """Import what a world does not need only when it is used."""
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{module}"), name)
