"""Functions that block can wait for the table."""

from __future__ import annotations

import threading

import pytest

import parley
from conftest import Start
from parley import blocking
from parley.testing import exercise

pytest.importorskip("greenlet")


class Chat(parley.World):
    """Blocking code in strands."""

    def seats(self) -> list[str]:
        return ["a", "b"]

    async def play(self, t: parley.Table) -> parley.Outcome:
        texts = await t.fork(2, lambda t, i: blocking.run(self.part, t, "ab"[i]))
        return parley.Outcome(data=texts)

    def part(self, t: parley.Table, seat: str) -> list[str]:
        try:
            size = blocking.wait(t.do(len, seat))
        except parley.Failed:
            size = 0
        return [blocking.wait(t.one(seat, f"{size} {i}")).text for i in range(3)]


def test_blocking() -> None:
    exercise(Chat)


def test_errors(start: Start) -> None:
    e = start("from parley import blocking\nawait blocking.run(lambda: blocking.wait(t.one('a', 'x')).text / 2)\n")
    assert e.begin()["ask"]
    assert "w.py:6: TypeError: unsupported operand" in e.reply("x")["error"]["text"]
    assert "ask" in e.begin("left")
    e.write({"op": "leave", "episode": "left"})
    assert e.begin("more")["ask"]


def test_other_places() -> None:
    found: list[str] = []

    def elsewhere() -> None:
        try:
            blocking.wait(parley.Table(None, "").ask())
        except parley.Misuse as e:
            found.append(str(e))

    elsewhere()
    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert len(found) == 2 and all("only in a function that blocking.run runs" in f for f in found)
