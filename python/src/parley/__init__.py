"""Parley: write a world in Python, play it on the Go engine, and read its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .acts import act_key
from .env import Env, Observation, Prompt, Step
from .errors import Error, Failed, Impure, Interrupted, Invalid, Misuse
from .rand import Rand
from .scorer import Played, PlayedCall, PlayedNote, Scorer
from .values import Call, Measure, Message, Outcome, Reply, Score, ToolCall
from .world import Table, Talk, World

if TYPE_CHECKING:
    from ._ask import Answer, ask
    from ._ask import ask_many as map
    from ._read import Report, Rows, Run
    from ._read import open_run as open
    from ._run import Summary, run

__version__ = "0.1.0"

__all__ = [
    "Answer", "Call", "Env", "Error", "Failed", "Impure", "Interrupted", "Invalid", "Measure", "Message", "Misuse", "Observation", "Outcome", "Played", "PlayedCall", "PlayedNote", "Prompt", "Rand", "Reply", "Report", "Rows", "Run", "Score", "Scorer",
    "Step", "Summary", "Table", "Talk", "ToolCall", "World", "act_key", "ask", "map", "open", "run",
]  # fmt: skip

_LATER = {
    "Answer": "_ask.Answer", "ask": "_ask.ask", "map": "_ask.ask_many", "Report": "_read.Report", "Rows": "_read.Rows", "Run": "_read.Run",
    "open": "_read.open_run", "Summary": "_run.Summary", "run": "_run.run",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import what a world does not need only when it is used."""
    if name not in _LATER:
        raise AttributeError(f"module 'parley' has no attribute {name!r}")
    import importlib

    module, _, attribute = _LATER[name].partition(".")
    return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
