"""Tests that every world should pass, without the engine: ``parley.testing.exercise(Auction, bidders=3)``."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from . import acts, guard, worker
from ._exercise_env import exercise_env
from ._json import record
from ._made_up import ODD, answer
from .env import Env
from .episode import Episode
from .errors import Error, describe
from .rand import Rand
from .values import Measure
from .world import World

_MOST_CALLS = 100_000
_FAILURES = ["timeout", "refused", "invalid", "server"]

Steps = dict[str, list[dict[str, Any]]]


class Play:
    """One play of a world with made-up replies. They depend on where a call is, not on when it is made."""

    def __init__(self, cls: type[World], params: Mapping[str, Any], policy: str, seed: int, order: str, acts: dict[str, Any]) -> None:
        self.steps: Steps = {}
        self.outcome: dict[str, Any] = {}
        self.calls = 0
        self._policy, self._seed, self._order, self._acts = policy, seed, order, acts
        world = cls(**params)
        self._seats = list(world.seats())
        self._episode = Episode(world, {s: f"agent of {s}" for s in self._seats}, seed, seed)
        self._forks: dict[str, tuple[str, list[int]]] = {}
        self._run()

    def _run(self) -> None:
        """Drive the strands in an order of one's own until all have ended."""
        rand = Rand(self._seed, 77)
        ready: list[tuple[str, bytes]] = [("", self._episode.begin())]
        while ready:
            at = {"first": 0, "last": len(ready) - 1}.get(self._order)
            name, step = ready.pop(rand.int_n(len(ready)) if at is None else at)
            got = cast("dict[str, Any]", json.loads(b"{" + step))
            turn = len(self.steps.setdefault(name, []))
            self.steps[name].append(got)
            if "error" in got:
                raise AssertionError(self._explain(got["error"], name))
            if "ask" in got:
                ready.append((name, self._episode.replies(name, [self._reply(name, turn, i, c) for i, c in enumerate(got["ask"])])))
            elif "fork" in got:
                self._forks[name] = (f"{name}{turn}.", [got["fork"]])
                for i in range(got["fork"]):
                    child = f"{name}{turn}.{i}/"
                    self._forks[child] = (name, [])
                    ready.append((child, self._episode.strand(child, name, i)))
            elif name:
                parent = self._forks[name][0]
                left = self._forks[parent][1]
                left[0] -= 1
                if left[0] == 0:
                    ready.append((parent, self._episode.joined(parent)))
            else:
                self.outcome = got["end"]

    def _explain(self, error: Mapping[str, str], strand: str) -> str:
        hint = ""
        if self._policy == "failing":
            hint = "\nEvery call failed in this play. A reply may have failed: check reply.ok before you use it."
        elif self._policy == "mixed":
            hint = "\nSome calls failed in this play. A reply may have failed: check reply.ok before you use it."
        elif self._policy == "odd":
            hint = "\nThe replies of this play are odd texts: models write anything."
        return f"the world raised in a play with {self._policy} replies{f', strand {strand}' if strand else ''}: {error['text']}{hint}\n{error.get('trace', '')}"

    def _reply(self, name: str, turn: int, index: int, call: Mapping[str, Any]) -> dict[str, Any]:
        self.calls += 1
        if self.calls > _MOST_CALLS:
            raise AssertionError(f"the world made {_MOST_CALLS:,} calls and has not ended: is a loop without an end?")
        place = f"{self._policy} {self._seed} {name} {turn} {index}"
        digest = hashlib.sha256(place.encode()).digest()
        rand = Rand(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big"))
        if self._policy == "failing" or self._policy == "mixed" and rand.int_n(3) == 0:
            return {"failed": rand.choice(_FAILURES)}
        if "act" in call:
            return self._act(place, name, index)
        return answer(call, rand, self._seed + turn + index if self._policy == "odd" else None)

    def _act(self, place: str, name: str, index: int) -> dict[str, Any]:
        """Run an act the first time, and use its recorded result after that."""
        if place not in self._acts:
            fn, args, kwargs = cast(Any, self._episode.pending(name, index).act)
            try:
                self._acts[place] = {"json": json.loads(json.dumps(acts.run(place, fn, args, kwargs)))}
            except Exception as e:
                self._acts[place] = {"failed": "raised", "why": describe(e)["text"]}
        return self._acts[place]


def _difference(a: Steps, b: Steps) -> str:
    """Say where two plays differ first."""
    for name in sorted(set(a) | set(b)):
        for turn, (x, y) in enumerate(zip(a.get(name, []), b.get(name, []))):
            if json.dumps(x) == json.dumps(y):
                continue
            for key in ("notes", "ask", "fork", "end"):
                one, other = json.dumps(x.get(key), ensure_ascii=False), json.dumps(y.get(key), ensure_ascii=False)
                if one != other:
                    at = next((i for i, (c, d) in enumerate(zip(one, other)) if c != d), 0)
                    cut = slice(max(0, at - 60), at + 60)
                    return f"strand {name!r}, turn {turn}, {key}:\n  one play:     …{one[cut]}\n  another play: …{other[cut]}"
        if len(a.get(name, [])) != len(b.get(name, [])):
            return f"strand {name!r} has {len(a.get(name, []))} turns in one play and {len(b.get(name, []))} in another"
    return ""


_CAUSES = {
    "twice": "It must be a pure function of its replies. Does it change something global, or a default of a param, or read something outside?",
    "order": "Strands of a fork must not depend on each other's order. Do they write to something that they share?",
    "process": "It differs in another process. Does it use the order of a set, hash(), id() or the environment? Use sorted(...) for a set.",
}


def _same(a: Steps, b: Steps, why: str) -> None:
    found = _difference(a, b)
    if found:
        raise AssertionError(f"the world does not play the same every time. {_CAUSES[why]}\n{found}")


def _check_outcome(play: Play, measures: Sequence[Measure], given: set[tuple[str, str]]) -> None:
    known = {(m.name, s): m for m in measures for s in (m.seats or ("",))}
    for s in play.outcome.get("scores", []):
        who = f"the score {s['name']}" + (f" of {s['seat']}" if s.get("seat") else "")
        key = (s["name"], s.get("seat", ""))
        if measures and key not in known:
            raise AssertionError(f"{who} is not declared: add it to measures(), which has {', '.join(sorted({m.name for m in measures}))}")
        if not measures and key[1] and key[1] not in play._seats:  # pyright: ignore[reportPrivateUsage]
            raise AssertionError(f"{who}: seats() does not list this seat")
        m = known.get(key)
        if m and ((m.low is not None and s["value"] < m.low) or (m.high is not None and s["value"] > m.high)):
            raise AssertionError(f"{who} is {s['value']}: measures() declares {m.low} to {m.high}")
        given.add(key)


def exercise(world: type[World] | type[Env], /, **params: Any) -> None:
    """Play a world or an environment many times with made-up replies and check what the engine relies on. Raises AssertionError.

    It plays with valid answers, with odd ones and with failures; twice; with strands in other orders; and in other
    processes. The steps must be the same, and the outcomes must have the scores that are declared.
    """
    with guard.guarding(world):
        _exercise(world, params)


def _exercise(world: type[World] | type[Env], params: dict[str, Any]) -> None:
    try:
        if issubclass(world, Env):
            record(worker.description(world), "params")
            exercise_env(world, params)
            return
        worker.check(world)
        record(worker.description(world), "params")
        made = world(**params)
        seats, measures = list(made.seats()), list(made.measures())
    except Error as e:
        raise AssertionError(str(e)) from None
    if not seats:
        raise AssertionError("seats() returned no seats: list at least one")
    for m in measures:
        unknown = set(m.seats) - set(seats)
        if unknown:
            raise AssertionError(f"the measure {m.name} names the seat {sorted(unknown)[0]!r}, which seats() does not list")
    given: set[tuple[str, str]] = set()
    acts: dict[str, Any] = {}
    pure = world.durable == "turn"
    for policy, seeds in (("valid", 5), ("failing", 1), ("mixed", 5), ("odd", len(ODD))):
        for seed in range(seeds):
            first = Play(world, params, policy, seed, "first", acts)
            _check_outcome(first, measures, given)
            if pure:
                _same(first.steps, Play(world, params, policy, seed, "first", acts).steps, "twice")
                for order in ("last", "random"):
                    _same(first.steps, Play(world, params, policy, seed, order, acts).steps, "order")
    missing = sorted({(m.name, s) for m in measures for s in (m.seats or ("",))} - given)
    if missing:
        name, seat = missing[0]
        raise AssertionError(f"measures() declares the score {name}{f' of {seat}' if seat else ''}, but no play gave it")
    if pure:
        _elsewhere(world, params, acts)


def _elsewhere(world: type[World], params: Mapping[str, Any], acts: dict[str, Any]) -> None:
    """Play in other processes with other seeds of hash(), where the world is in a file."""
    try:
        file = inspect.getfile(world)
    except (TypeError, OSError):
        return
    if not os.path.isfile(file) or "." in world.__qualname__ or any("act" in c for s in _play(world, params, acts).values() for t in s for c in t.get("ask", [])):
        return
    here = _play(world, params, acts)
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for seed in ("1", "2"):
        path = os.pathsep.join([root, *filter(None, sys.path)])
        env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
        command = [sys.executable, "-m", "parley.testing", file, world.__qualname__, json.dumps(params)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssertionError(f"the world cannot be played in another process:\n{done.stderr}")
        _same(here, json.loads(done.stdout.splitlines()[-1]), "process")


def _play(world: type[World], params: Mapping[str, Any], acts: dict[str, Any]) -> Steps:
    return Play(world, params, "valid", 0, "first", acts).steps


def main() -> None:
    """Play a world once and print its steps, for exercise."""
    file, name, params = sys.argv[1:]
    try:
        world = cast("type[World]", worker.load(file, name))
        with guard.guarding(world):
            print("\n" + json.dumps(_play(world, json.loads(params), {})))
    except Exception as e:
        raise SystemExit(describe(e)["text"]) from None


if __name__ == "__main__":
    main()
