"""Scorers and judges: new scores for the episodes of a run that was played before."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from .errors import Misuse
from .values import Message, Outcome, Reply, Score, Scores
from .world import Table, World


@dataclasses.dataclass(frozen=True)
class PlayedNote:
    """A note of a world. ``turn`` is the turn in which it was made."""

    turn: str
    kind: str
    seat: str
    data: Any


@dataclasses.dataclass(frozen=True)
class PlayedCall:
    """A call and its reply. ``messages`` is the prompt; ``act`` is what was done instead, if it was an act."""

    turn: str
    seat: str
    agent: str
    label: str
    messages: Sequence[Message]
    act: Any
    reply: Reply[Any]


@dataclasses.dataclass(frozen=True)
class Played:
    """An episode that was played. Do not change it.

    ``lineup`` maps seats to agents, and ``models`` agents to models. ``scores`` and ``data`` are its outcome.
    """

    run: str
    episode: int
    kind: str
    params: Any
    cell: str
    deal: int
    lineup: Mapping[str, str]
    models: Mapping[str, str]
    scores: Sequence[Score]
    data: Any
    notes: Sequence[PlayedNote]
    calls: Sequence[PlayedCall]

    def said(self, seat: str = "") -> list[str]:
        """Return the texts of answers, of one seat or of all, in order."""
        return [c.reply.text for c in self.calls if c.act is None and c.reply.ok and seat in ("", c.seat)]


def played(raw: Mapping[str, Any]) -> Played:
    """Read an episode as the engine sends it."""
    outcome = raw["outcome"]
    calls = [
        PlayedCall(c["turn"], c["seat"], c["agent"], c.get("label", ""), c.get("messages", []), c.get("act"), Reply(c["reply"])) for c in raw["calls"]
    ]
    return Played(
        raw["run"], raw["episode"], raw["kind"], raw["params"], raw.get("cell", ""), raw["deal"], raw["lineup"], raw["models"],
        [Score(s["name"], s["value"], s.get("seat", "")) for s in outcome.get("scores", [])], outcome.get("data"),
        [PlayedNote(n["turn"], n["kind"], n.get("seat", ""), n.get("data")) for n in raw["notes"]], calls,
    )  # fmt: skip


class Scorer(World):
    """Scores episodes of a run: ``parley score run.parley --with polite.py:Politeness``.

    Typed fields are its params. ``judges`` names the models that it may ask, by seat. ``score`` is ``def score(self,
    episode)``, or ``async def score(self, episode, t)`` for one that asks judges with ``await t.one("judge", …)``. It
    returns the scores: ``{"polite": 1}``, or ``{"polite": {"a": 1, "b": 0}}`` by seat of the episode.
    """

    judges: ClassVar[Mapping[str, str]] = {}

    def seats(self) -> Sequence[str]:
        return list(self.judges)

    def score(self, *args: Any, **kwargs: Any) -> Any:
        """Score an episode. Its arguments are not fixed here, since a judge has one more."""
        raise NotImplementedError(f"{type(self).__name__} has no method score: add def score(self, episode)")

    async def play(self, t: Table) -> Outcome | None:
        episode = t._episode.played  # pyright: ignore[reportPrivateUsage]
        if episode is None:
            raise Misuse(f"{type(self).__name__} scores episodes of another run: use parley score RUN --with FILE:{type(self).__name__}")
        score: Any = self.score
        found = await score(episode, t) if inspect.iscoroutinefunction(score) else score(episode)
        made = Outcome(cast(Scores, found) if found is not None else ())
        declared = {m.name for m in self.measures()}
        for name in [s.name for s in made.scores] if not isinstance(made.scores, Mapping) else made.scores:
            if declared and name not in declared:
                raise Misuse(f"score() gave {name!r}, which measures() does not list")
        return made


def check(cls: type[Scorer]) -> None:
    """Refuse a class that cannot score, with a sentence that says what to change."""
    if cls.score is Scorer.score:
        raise Misuse(f"{cls.__name__} has no method score")
    wanted = 3 if inspect.iscoroutinefunction(cls.score) else 2
    if len(inspect.signature(cls.score).parameters) != wanted:
        raise Misuse(f"{cls.__name__}.score: write def score(self, episode), or async def score(self, episode, t) to ask judges")
    if any(not isinstance(seat, str) or not isinstance(model, str) for seat, model in cls.judges.items()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f'{cls.__name__}.judges: want models by seat, such as {{"judge": "openai/gpt-5-mini"}}')
