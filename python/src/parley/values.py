"""The values that a world and its table exchange: Call, Reply, Outcome, Score, Measure."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypedDict, TypeVar, cast

from .errors import Failed
from .schema import Form

T = TypeVar("T")

Message = Mapping[str, Any]
"""A message in the form of OpenAI's chat completions: ``{"role": "user", "content": "…"}``."""


class Settings(TypedDict, total=False):
    """The settings of a call that the agent in the seat does not decide."""

    tools: Sequence[Mapping[str, Any]]
    tool_choice: Any
    temperature: float
    top_p: float
    max_tokens: int
    stop: Sequence[str]
    effort: str
    seed: int


@dataclasses.dataclass(frozen=True)
class Measure:
    """A score that outcomes have. ``seats`` have it, or the whole episode if there are none. ``rivals``: seats compete for it."""

    name: str
    seats: Sequence[str] = ()
    rivals: bool = False
    low: float | None = None
    high: float | None = None


@dataclasses.dataclass(frozen=True)
class Score:
    """A number about one seat, or about the whole episode if seat is empty."""

    name: str
    value: float
    seat: str = ""


Scores = Sequence[Score] | Mapping[str, float | Mapping[str, float]]


@dataclasses.dataclass
class Outcome:
    """The result of an episode.

    ``scores`` is a list of Score, or a mapping: ``{"profit": {"a": 1.5, "b": 0}, "sold": 3}``. Leave out what was not
    measured. ``data`` is your own record, any JSON. ``failed`` says why the episode could not be finished.
    """

    scores: Scores = ()
    data: Any = None
    failed: str = ""


class Call(Generic[T]):
    """One thing to wait for: a question to a seat, or an act. Table.call and Table.act make it."""

    __slots__ = ("encoded", "form", "act")

    def __init__(self, encoded: bytes, form: Form[T] | None, act: tuple[Callable[..., Any], Any, Any] | None = None) -> None:
        self.encoded = encoded
        self.form = form
        self.act = act


@dataclasses.dataclass(frozen=True)
class ToolCall:
    """A tool that a model wants called. ``arguments`` is JSON as the model wrote it, so it may be malformed."""

    id: str
    name: str
    arguments: str

    @property
    def values(self) -> dict[str, Any]:
        """The arguments by name. Raises parley.Failed if the model did not write a JSON object."""
        try:
            made = json.loads(self.arguments or "{}")
        except (ValueError, RecursionError):
            made = None
        if not isinstance(made, dict):
            raise Failed(f"the arguments of {self.name} are not a JSON object: {self.arguments[:200]!r}", "invalid")
        return cast("dict[str, Any]", made)


class Reply(Generic[T]):
    """The answer to a call. A failure is a reply too: ``failed`` is its kind, and everything else is empty."""

    __slots__ = ("_raw", "_form")

    def __init__(self, raw: Mapping[str, Any], form: Form[T] | None = None) -> None:
        self._raw = raw
        self._form = form

    @property
    def text(self) -> str:
        """The text, or "" if the call failed."""
        return self._raw.get("text", "")

    @property
    def json(self) -> Any:
        """The answer to a schema, or the result of an act, as JSON. None if there is none."""
        return self._raw.get("json")

    @property
    def value(self) -> T | None:
        """The answer as the type that was given as schema, or None if there is none."""
        raw = self._raw.get("json")
        return None if raw is None or self._form is None else self._form.read(raw)

    @property
    def ok(self) -> bool:
        """Whether the call was answered."""
        return not self._raw.get("failed")

    @property
    def failed(self) -> str:
        """The kind of the failure, such as timeout, or ""."""
        return self._raw.get("failed", "")

    @property
    def why(self) -> str:
        """What the function of an act raised, as ``w.py:12: ValueError: no``, if ``failed`` is raised; or ""."""
        return self._raw.get("why", "")

    @property
    def finish(self) -> str:
        """Why the model stopped: stop, length, tool_calls, refused."""
        return self._raw.get("finish", "")

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tools that the model wants called."""
        return [ToolCall(c.get("id", ""), c.get("name", ""), c.get("arguments", "")) for c in self._raw.get("tool_calls", ())]

    @property
    def thoughts(self) -> list[dict[str, Any]]:
        """The reasoning of the model, as far as it was given."""
        return self._raw.get("thoughts", [])

    @property
    def weights(self) -> str:
        """The version of the weights that answered, if the server reports it."""
        return self._raw.get("weights", "")

    def __repr__(self) -> str:
        return f"Reply({self._raw!r})"
