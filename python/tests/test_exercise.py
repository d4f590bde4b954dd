"""exercise() accepts worlds that are right and says what is wrong with others."""

from __future__ import annotations

import importlib
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import pytest

import parley
from parley.testing import exercise

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"

WRONG = {
    "set": ("await t.one('a', ' '.join({'x', 'y', 'z', 'u', 'v', 'w'}))", "Does it use the order of a set"),
    "global": ("SEEN.append(1)\nawait t.one('a', str(len(SEEN)))", "Does it change something global"),
    "default": ("self.names.append('x'); type(self).names.append('y')\nawait t.one('a', str(self.names))", "Does it change something global"),
    "order": (
        "got = []\nasync def f(t):\n    got.append((await t.one('a', 'x')).text)\nawait t.fork(f, f, f)\nawait t.one('a', str(got))",
        "Strands of a fork must not depend on each other's order",
    ),
    "unchecked": ("r = await t.one('a', 'x', schema={'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']})\nr.json['n']", "check reply.ok"),
    "text": ("r = await t.one('a', 'x')\nif r.ok: r.text.split()[0]", "models write anything"),
    "seat": ("await t.one('nobody', 'x')", "the seat 'nobody', which seats() does not list: want one of a, b"),
    "undeclared": ("return parley.Outcome({'p': {'a': 1, 'b': 1}, 'q': 2})", "the score q is not declared: add it to measures(), which has p"),
    "missing": ("return parley.Outcome({'p': {'a': 1}})", "declares the score p of b, but no play gave it"),
    "bounds": ("return parley.Outcome({'p': {'a': 11, 'b': 1}})", "the score p of a is 11.0: measures() declares 0 to 10"),
    "endless": ("while True: await t.one('a', 'x')", "calls and has not ended"),
    "impure": ("import random; random.random()", "use t.rand"),
    "note": ("t.note('x', {1})", "a set is not JSON"),
}


def load(tmp_path: Path, name: str, play: str) -> Any:
    text = "import parley\nSEEN = []\nclass W(parley.World):\n    names: list[str] = []\n    def seats(self): return ['a', 'b']\n"
    text += "    def measures(self): return [parley.Measure('p', ['a', 'b'], low=0, high=10)]\n    async def play(self, t):\n"
    body = play if "return" in play or name == "endless" else play + "\nreturn parley.Outcome({'p': {'a': 1, 'b': 1}})"
    (tmp_path / f"world_{name}.py").write_text(text + textwrap.indent(body, " " * 8) + "\n")
    sys.path.insert(0, str(tmp_path))
    try:
        return importlib.import_module(f"world_{name}").W
    finally:
        sys.path.remove(str(tmp_path))


@pytest.mark.parametrize("name", WRONG)
def test_wrong_worlds(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.testing._MOST_CALLS", 5_000)  # sooner than for a user
    play, want = WRONG[name]
    with pytest.raises(AssertionError) as e:
        exercise(load(tmp_path, name, play))
    assert want in str(e.value)


@dataclass
class Answer:
    n: int
    text: Optional[str] = None


class Right(parley.World):
    """A world with everything."""

    rounds: int = 2

    def seats(self) -> list[str]:
        if self.rounds > 5:
            raise parley.Invalid("rounds", "want 1 to 5")
        return ["a", "b"]

    async def play(self, t: parley.Table) -> parley.Outcome:
        async def part(t: parley.Table, i: int) -> int:
            reply = await t.one("a", f"{i} {t.rand.perm(5)}", schema=Answer)
            await t.talk("a", "In a strand.").say("Hello?")
            return reply.value.n if reply.value is not None else 0

        numbers = await t.fork(3, part)
        talk = t.talk("b", "Be brief.")
        for _ in range(self.rounds):
            await talk.say("Hello?")
        try:
            done = await t.do(max, numbers)
        except parley.Failed:
            done = 0
        return parley.Outcome([parley.Score("most", done)], data={"numbers": numbers})


def test_right_worlds() -> None:
    exercise(Right)
    exercise(Right, rounds=1)
    with pytest.raises(AssertionError, match="rounds: want 1 to 5"):
        exercise(Right, rounds=6)


@pytest.mark.parametrize(("library", "module", "name"), [("textarena", "textarena_game", "Game"), ("gymnasium", "gymnasium_lake", "Lake"), ("concordia", "concordia_talk", "Talk")])
def test_bridges(library: str, module: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    exercise(getattr(importlib.import_module(module), name))


def test_examples() -> None:
    sys.path.insert(0, str(EXAMPLES))
    try:
        from auction import Auction  # type: ignore[import-not-found]
        from secret_words import Secrets  # type: ignore[import-not-found]

        exercise(Auction)
        exercise(Auction, bidders=5, rounds=2)
        exercise(Secrets)
        exercise(Secrets, players=5, rounds=2, mode="targeted")
    finally:
        sys.path.remove(str(EXAMPLES))
