"""Plays the strands of an episode step by step: the trampoline that stands in for an event loop.

A step runs a coroutine until it waits for its table. The worker and the tests of a world drive steps.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Mapping, Sequence
from types import CoroutineType
from typing import Any, cast

from ._json import quote, record
from .errors import Misuse, describe, is_own, line_of, place, scrub
from .guard import fold
from .values import Call, Outcome, Score
from .world import ASK, FORK, Table, World


class Episode:
    """One world that is played: its strands by name."""

    __slots__ = ("world", "lineup", "seed", "deal", "strands", "guarded", "over", "played")

    def __init__(self, world: World, lineup: Mapping[str, str], seed: int, deal: int) -> None:
        self.world = world
        self.lineup = lineup
        self.seed = seed
        self.deal = deal
        self.strands: dict[str, Table] = {}
        self.guarded = world.durable != "episode"
        self.played: Any = None  # of a scorer: the episode that is scored
        self.over = False  # its first strand has ended, or one of them failed

    def known(self, seat: str, what: str) -> None:
        """Refuse a seat that the world does not have."""
        if seat in self.lineup:
            return
        seats = list(self.world.seats())
        if seat not in seats:
            raise Misuse(f"{what} the seat {seat!r}, which seats() does not list: want one of {', '.join(map(str, seats)) or 'none'}")

    def begin(self) -> bytes:
        """Play the first step of the first strand."""
        table = self.strands[""] = Table(self, "")
        return self._start(table, self.world.play, (table,))

    def strand(self, name: str, of: str, index: int) -> bytes:
        """Play the first step of a strand of a fork."""
        parent = self.table(of)
        forks = parent._forks
        if forks is None or not 0 <= index < len(parent._results):
            raise LookupError(f"strand {of!r} has no fork with the index {index}")
        table = self.strands[name] = Table(self, name, parent, index)
        if isinstance(forks[0], int):
            return self._start(table, cast(Any, forks[1]), (table, index))
        return self._start(table, cast(Any, forks[index]), (table,))

    def table(self, name: str) -> Table:
        """Return a strand by name."""
        found = self.strands.get(name)
        if found is None:
            raise LookupError(f"the episode has no strand {name!r}")
        return found

    def pending(self, strand: str, index: int) -> Call[Any]:
        """Return a call that a strand waits for."""
        calls = self.table(strand)._calls
        if not 0 <= index < len(calls):
            raise LookupError(f"strand {strand!r} does not wait for a call {index}")
        return calls[index]

    def _start(self, table: Table, play: Any, args: tuple[Any, ...]) -> bytes:
        # The world's code begins here, so it is a step like any other.
        return resume(table, None, lambda: play(*args))

    def joined(self, name: str) -> bytes:
        """Continue a strand whose forks have ended."""
        return resume(self.table(name), None)

    def replies(self, name: str, replies: Sequence[Any]) -> bytes:
        """Continue a strand with the replies to its calls."""
        table = self.table(name)
        if len(replies) != len(table._calls):
            raise LookupError(f"strand {name!r} waits for {len(table._calls)} replies, not {len(replies)}")
        return resume(table, replies)

    def refused(self, name: str, text: str) -> bytes:
        """Raise in the line of a strand that made a call which the engine refuses."""
        return resume(self.table(name), Misuse(text))

    def close(self) -> None:
        """End all strands."""
        for table in reversed(list(self.strands.values())):
            coro, table._coro = table._coro, None
            if coro is not None:
                _enter(table)
                try:
                    coro.close()
                except BaseException:  # the world's own finally may do anything: nobody waits for it
                    pass
                finally:
                    _leave()
        self.strands.clear()


def _enter(table: Table) -> None:
    fold.table = table
    fold.serial += 1
    if table._episode.guarded:
        fold.thread = threading.get_ident()


def _leave() -> None:
    fold.table = None
    fold.thread = 0


def resume(table: Table, value: Any, start: Any = None) -> bytes:
    """Play one step of a strand with a value, or with an error to raise, and return it as the end of an answer: everything after the id."""
    try:
        _enter(table)
        if start is not None:
            table._coro = _coroutine(start())
        coro = cast(Any, table._coro)
        what = coro.throw(value) if isinstance(value, Misuse) else coro.send(value)
        _leave()
    except StopIteration as stop:
        _leave()
        return _end(table, stop.value)
    except BaseException as e:
        _leave()
        return _fail(table, error_step(e))
    if what is ASK:
        step = b'"ask":[' + table._out + b"]}"
        table._out = b""
        if table._notes is None:
            return step
    elif what is FORK:
        step = b'"fork":%d}' % len(table._results)
    else:
        return _foreign(table, what)
    return _with_notes(table, step)


def _with_notes(table: Table, step: bytes) -> bytes:
    notes = table._notes
    if notes is None:
        return step
    table._notes = None
    return b'"notes":[' + b",".join(notes) + b"]," + step


def _fail(table: Table, step: bytes) -> bytes:
    table._episode.over = True
    return _with_notes(table, step)


def _coroutine(made: Any) -> Any:
    if not isinstance(made, CoroutineType) and not (hasattr(made, "send") and hasattr(made, "throw") and hasattr(made, "close")):
        raise Misuse(f"want an async function without yield: it returned a {type(made).__name__}, not a coroutine")
    return cast(Any, made)


def _end(table: Table, value: Any) -> bytes:
    """Return the step that ends a strand."""
    table._coro = None
    of = table._of
    if of is not None:
        of._results[table._index] = value
        del table._episode.strands[table._name]
        return _with_notes(table, b'"end":{}}')
    cls = cast(Any, type(table._episode.world))
    table._episode.over = True
    try:
        if value is None and _promises(cls):
            raise Misuse("play returned None: is a return missing? Write -> parley.Outcome | None if an episode may end without an outcome")
        end = outcome(value)
        if isinstance(value, Outcome) and table._episode.played is None:  # a scorer scores the seats of another world
            for s in list_scores(value):
                if s.seat:
                    table._episode.known(s.seat, f"the score {s.name} is for")
        return _with_notes(table, b'"end":' + end + b"}")
    except Misuse as e:
        return _fail(table, _error(f"{line_of(cls.play)}the outcome of {cls.__name__}.play: {e}", ""))


def _promises(cls: Any) -> bool:
    """Report whether the hint of play says that it always returns an outcome."""
    hint = getattr(cls.play, "__annotations__", {}).get("return")
    return hint is Outcome or isinstance(hint, str) and hint.strip() in ("Outcome", "parley.Outcome")


def outcome(value: Any) -> bytes:
    """Encode an outcome. A Misuse says what is wrong with it."""
    if value is None:
        value = Outcome()
    if not isinstance(value, Outcome):
        raise Misuse(f"want a parley.Outcome, got a {type(value).__name__}")
    made: dict[str, Any] = {}
    scores = [_score(s) for s in list_scores(value)]
    if scores:
        made["scores"] = scores
    if value.data is not None:
        made["data"] = value.data
    if value.failed:
        made["failed"] = str(value.failed)
    return record(made, "data")


def list_scores(value: Outcome) -> list[Score]:
    """Return the scores of an outcome as a list."""
    if not isinstance(value.scores, Mapping):
        return list(value.scores)
    out: list[Score] = []
    for name, of in value.scores.items():
        if isinstance(of, Mapping):
            out.extend(Score(name, v, seat) for seat, v in of.items())
        else:
            out.append(Score(name, of))
    return out


def _score(s: Any) -> dict[str, Any]:
    if not isinstance(s, Score) or not isinstance(s.name, str) or not isinstance(s.seat, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f"the score {s!r}: want a parley.Score with a name and a number")
    who = f"the score {s.name}" + (f" of {s.seat}" if s.seat else "")
    try:
        number = float(s.value)
    except (TypeError, ValueError, OverflowError):
        raise Misuse(f"{who} is {str(s.value)[:40]}: want a number") from None
    if not math.isfinite(number):
        raise Misuse(f"{who} is {number}: leave out what was not measured")
    made = dataclasses.asdict(s)
    made["value"] = number
    if not s.seat:
        del made["seat"]
    return made


def _error(text: str, trace: str) -> bytes:
    made = b'"error":{"text":' + quote(scrub(text))
    return made + (b',"trace":' + quote(scrub(trace)) if trace else b"") + b"}}"


def error_step(e: BaseException) -> bytes:
    """Return an error as the end of an answer."""
    d = describe(e)
    return _error(d["text"], d["trace"])


def _foreign(table: Table, what: Any) -> bytes:
    """Return the error of a strand that waits for something else than its table."""
    at, node = "", cast(Any, table._coro)
    for _ in range(1000):
        frame = getattr(node, "cr_frame", None) or getattr(node, "gi_frame", None)
        if frame is None:
            break
        if not is_own(frame.f_code.co_filename) and "site-packages" not in frame.f_code.co_filename and "asyncio" not in frame.f_code.co_filename:
            at = place(frame.f_code.co_filename, frame.f_lineno) + ": "
        node = getattr(node, "cr_await", None) or getattr(node, "gi_yieldfrom", None)
    kind = "nothing (asyncio.sleep(0)?)" if what is None else f"a {type(what).__name__}"
    text = (
        f"{at}a world can await only its table, but awaits {kind}. Use await t.ask(...) for calls, await t.fork(...) to do several things "
        "at once, and await t.do(...) for work outside"
    )
    return _fail(table, _error(text, ""))
