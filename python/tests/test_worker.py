"""Conversations between a fake engine and a real worker: every op, and every error."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest

import parley
import parley.errors
from conftest import Start
from parley import _watchdog, guard

AUCTION = """
from dataclasses import dataclass
from typing import Annotated, Literal, Optional
import parley

@dataclass
class Bid:
    bid: int

@dataclass
class Inner:
    deep: float = 0.5

class W(parley.World):
    '''Sealed bids.

    rounds: How many things are sold.
    '''
    version = 3
    bidders: Annotated[int, "How many bid."] = 2
    rounds: int = 1
    mode: Literal["a", "b"] = "a"
    names: list[str] = []
    more: Optional[Inner] = None
    must: dict[str, int]

    def seats(self):
        if not 2 <= self.bidders <= 20:
            raise parley.Invalid("bidders", "want 2 to 20")
        return [f"s{i}" for i in range(self.bidders)]

    def measures(self):
        return [parley.Measure("profit", self.seats(), rivals=True, low=0), parley.Measure("sold")]

    async def play(self, t):
        replies = await t.ask(*(t.call(s, "Bid?", label="bid", schema=Bid, max_tokens=50) for s in self.seats()))
        best = max((r.value.bid, s) for r, s in zip(replies, self.seats()) if r.ok)
        t.note("sold", {"to": best[1]}, seat=best[1])
        return parley.Outcome({"profit": {best[1]: best[0]}, "sold": 1}, data={"best": best[0]})

    @classmethod
    def stand_in(cls, model, request, seed):
        return '{"bid":1}' if model == "small" else None
"""


def test_every_op(start: Start) -> None:
    e = start(whole=AUCTION)
    hello = e.hello
    assert hello.pop("language").startswith("python 3.") and list(hello.pop("files")) == ["w.py"]
    assert hello == {
        "parley": 1, "version": 3, "doc": "Sealed bids.", "durable": "turn", "stand_in": True, "limit": 30.0,
        "params": [
            {"name": "bidders", "type": "int", "default": 2, "doc": "How many bid."},
            {"name": "rounds", "type": "int", "default": 1, "doc": "How many things are sold."},
            {"name": "mode", "type": {"one_of": ["a", "b"]}, "default": "a"},
            {"name": "names", "type": {"list": "str"}, "default": []},
            {"name": "more", "type": {"optional": {"fields": [{"name": "deep", "type": "float", "default": 0.5}]}}, "default": None},
            {"name": "must", "type": {"map": "int"}},
        ],
    }  # fmt: skip
    params = {"must": {"x": 1}}
    assert e.ask("seats", params=params) == {
        "seats": ["s0", "s1"], "measures": [{"name": "profit", "seats": ["s0", "s1"], "rivals": True, "low": 0}, {"name": "sold"}],
    }  # fmt: skip
    for given, want in {
        '{"must":{},"bidders":1}': ("bidders", "want 2 to 20"),
        '{"must":{},"bidders":"x"}': ("bidders", "'x': want a whole number"),
        '{"must":{"k":true}}': ("must.k", "True: want a whole number"),
        '{"must":{},"mode":"c"}': ("mode", "'c': want one of a, b"),
        '{"must":{},"names":["a",1]}': ("names[1]", "1: want a text"),
        '{"must":{},"more":{"deep":1,"x":2}}': ("more.x", "unknown; known are deep"),
        '{"must":{},"z":1}': ("z", "unknown; known are bidders, rounds, mode, names, more, must"),
        "{}": ("must", "it has no default: set it"),
    }.items():
        assert e.ask("seats", params=json.loads(given)) == {"error": {"text": want[1], "param": want[0]}}
    schema = {"type": "object", "properties": {"bid": {"type": "integer"}}, "required": ["bid"], "additionalProperties": False}
    call = {"label": "bid", "messages": [{"role": "user", "content": "Bid?"}], "schema": {"name": "bid", "schema": schema}, "max_tokens": 50}
    assert e.begin(params=params) == {"ask": [{"seat": "s0", **call}, {"seat": "s1", **call}]}
    assert e.reply({"text": '{"bid":7}', "json": {"bid": 7}}, {"failed": "timeout"}) == {
        "notes": [{"kind": "sold", "seat": "s0", "data": {"to": "s0"}}],
        "end": {"scores": [{"seat": "s0", "name": "profit", "value": 7.0}, {"name": "sold", "value": 1.0}], "data": {"best": 7}},
    }
    assert "no episode" in e.reply("x")["error"]["text"]  # it has ended
    assert e.ask("answer", model="small", request={}, seed="1") == {"text": '{"bid":1}'}
    assert e.ask("answer", model="large", request={}, seed="1") == {}
    assert e.begin("f", params)["ask"]
    e.write({"op": "leave", "episode": "f"})
    e.write({"op": "leave", "episode": "never"})
    assert "no episode 'f'" in e.reply("x", "y", episode="f")["error"]["text"]
    assert "unknown op" in e.ask("dance")["error"]["text"]
    assert e.end() == ""


def test_forks_acts_and_talks(start: Start) -> None:
    e = start("""
        import os, tools
        async def part(t, i):
            mine = (await t.one("a", f"q{i}")).text + str(t.rand.int_n(1000))
            inner = await t.fork(2, lambda t, k: leaf(t, i, k))
            return mine, inner
        async def leaf(t, i, k):
            t.note("leaf", [i, k])
            return (await t.one("a", f"leaf{i}{k}")).text
        assert await t.fork() == [] and await t.fork(0, part) == []
        got = await t.fork(2, part)
        talk = t.talk("a", "Be brief.")
        talk.add({"role": "user", "content": "one"})
        first = await talk.say("two", temperature=0.5)
        again = await talk.say("three")
        if not again.ok:
            again = await talk.say("four")
        found = await t.do(tools.search, "x", seat="a", label="look")
        kept = await t.do(tools.later, n=2)
        try:
            await t.do(tools.bad)
        except parley.Failed as f:
            failed = f.kind
        return parley.Outcome(data=[got, first.text, again.text, found, kept, failed])
    """)  # fmt: skip
    tools = "async def _a(n):\n    import asyncio\n    await asyncio.sleep(0)\n    return [n]\ndef search(q):\n    print('searching')\n    return {'q': q, 'at': __import__('time').time() > 0}\nasync def later(n): return await _a(n)\ndef bad(): return {1}\n"
    with open(os.path.join(os.path.dirname(e.errors.name), "tools.py"), "w") as f:
        f.write(tools)
    assert e.begin() == {"fork": 2}
    two = e.ask("strand", episode="e", strand="0.1/", of="", index=1)
    one = e.ask("strand", episode="e", strand="0.0/", of="", index=0)
    assert [s["ask"][0]["messages"][0]["content"] for s in (one, two)] == ["q0", "q1"]
    assert e.reply("A", strand="0.0/") == {"fork": 2}
    assert e.reply("B", strand="0.1/") == {"fork": 2}
    for i in (1, 0):  # the inner forks of both at the same time
        for k in (1, 0):
            got = e.ask("strand", episode="e", strand=f"0.{i}/1.{k}/", of=f"0.{i}/", index=k)
            assert got["notes"] == [{"kind": "leaf", "data": [i, k]}]
    for i, k in ((0, 0), (1, 1), (1, 0), (0, 1)):
        assert e.reply(f"r{i}{k}", strand=f"0.{i}/1.{k}/") == {"end": {}}
    assert e.ask("joined", episode="e", strand="0.1/") == {"end": {}}
    assert e.ask("joined", episode="e", strand="0.0/") == {"end": {}}
    said = e.ask("joined", episode="e", strand="")["ask"][0]
    assert (said["talk"], said["keep"], said["temperature"]) == (1, 0, 0.5)
    assert [m["content"] for m in said["messages"]] == ["Be brief.", "one", "two"]
    said = e.reply("hi")["ask"][0]
    assert said["keep"] == 3 and said["messages"] == [{"role": "assistant", "content": "hi"}, {"role": "user", "content": "three"}]
    said = e.reply({"failed": "timeout"})["ask"][0]  # the failed call leaves no trace
    assert said["keep"] == 3 and [m["content"] for m in said["messages"]] == ["hi", "four"]
    act = e.reply("ho")["ask"][0]
    assert act == {"seat": "a", "label": "look", "act": {"name": "tools.search", "body": ["x"]}}
    result = e.ask("act", episode="e", strand="", index=0, act=act["act"])
    assert result == {"result": {"q": "x", "at": True}}
    act = e.reply({"json": result["result"]})["ask"][0]
    assert act == {"seat": "", "act": {"name": "tools.later", "body": {"args": [], "kwargs": {"n": 2}}}}
    assert e.ask("act", episode="e", strand="", index=0, act=act["act"]) == {"result": [2]}
    assert "does not wait for a call 7" in e.ask("act", episode="e", strand="", index=7, act=act["act"])["error"]["text"]
    e.reply({"json": [2]})
    assert "a set is not JSON; use sorted(...)" in e.ask("act", episode="e", strand="", index=0, act={})["error"]["text"]
    got = e.reply({"failed": "server"})["end"]["data"]
    assert got[0][0][1] == ["r00", "r01"] and got[0][1][1] == ["r10", "r11"] and got[1:] == ["hi", "ho", {"q": "x", "at": True}, [2], "server"]
    assert e.end() == "searching\n"


def test_refused_calls_and_tools(start: Start) -> None:
    """The engine says what is wrong with a call, and the world raises in the line that made it. A tool call has attributes."""
    e = start("""
        talk = t.talk("a")
        reply = await talk.say("x", tools=[{"name": "price"}])
        (call,) = reply.tool_calls
        talk.add({"role": "tool", "tool_call_id": call.id, "content": f"{call.name} {call.values['item']}"})
        await talk.say(
            temperature=9,
        )
    """)
    e.begin()
    call = {"id": "7", "name": "price", "arguments": '{"item":"lamp"}'}
    said = e.reply({"tool_calls": [call], "finish": "tool_calls"})["ask"][0]["messages"]
    assert said == [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "7", "content": "price lamp"}]
    error = e.ask("refused", episode="e", strand="", text="temperature 9: use 0 to 2")["error"]
    assert error["text"] == "w.py:10: Misuse: temperature 9: use 0 to 2" and "await talk.say(" in error["trace"]


def test_arguments_of_a_tool_call() -> None:
    assert parley.ToolCall("1", "f", "").values == {}
    for wrong in ("{", "[1]", "[" * 100_000):
        with pytest.raises(parley.Failed, match="the arguments of f are not a JSON object") as e:
            print(parley.ToolCall("1", "f", wrong).values)
        assert e.value.kind == "invalid"


def test_stand_in_calls(start: Start) -> None:
    """A stand-in may call tools. If it is wrong, the user is told once."""
    e = start(whole="""
        import parley
        class W(parley.World):
            def seats(self): return ['a']
            async def play(self, t): ...
            @classmethod
            def stand_in(cls, model, request, seed):
                return [{"name": "price", "arguments": {"item": "lamp"}}] if model == "small" else [{"function": "\x1b"}]
    """)
    assert e.ask("answer", model="small", request={}, seed="1") == {"calls": [{"name": "price", "arguments": '{"item":"lamp"}'}]}
    for _ in range(2):
        assert "want {\"name\":" in e.ask("answer", model="large", request={}, seed="1")["error"]["text"]
    told = e.end()
    assert told.count("W.stand_in failed, so the simulated provider makes up the answer: ") == 1 and "\x1b" not in told


ERRORS = [
    ("1/0", "w.py:5: ZeroDivisionError: division by zero"),
    ("import nosuch", "w.py:5: ModuleNotFoundError: No module named 'nosuch'"),
    ("import asyncio\nawait asyncio.sleep(1)", "w.py:6: RuntimeError: no running event loop. A world has no event loop: await only its table"),
    ("import asyncio\nawait asyncio.sleep(0)", "w.py:6: a world can await only its table, but awaits nothing"),
    ("class F:\n    def __await__(self): yield self\nawait F()", "w.py:6: a world can await only its table, but awaits a F"),
    ("t.note('n', {1})", "w.py:5: Misuse: note n: a set is not JSON; use sorted(...)"),
    ("t.note('n', float('nan'))", "w.py:5: Misuse: note n: NaN and infinity are not JSON"),
    ("t.note('n', '\\ud800')", "w.py:5: Misuse: note n: a text has a half of a character"),
    ("x = []\nfor _ in range(100000): x = [x]\nt.note('n', x)", "w.py:7: Misuse: note n: it is nested too deeply"),
    ("t.note(1, 2)", "kind and seat must be texts"),
    ("return parley.Outcome({'p': {'a': float('nan')}})", "w.py:4: the outcome of W.play: the score p of a is nan: leave out what was not measured"),
    ("return parley.Outcome({'p': 10**400})", "the score p is 1000000"),
    ("return parley.Outcome([1])", "the score 1: want a parley.Score"),
    ("return parley.Outcome(data=object())", "data: a object is not JSON"),
    ("return 7", "the outcome of W.play: want a parley.Outcome, got a int"),
    ("def f(): f()\nf()", "RecursionError: the world calls itself too deeply"),
    ("import sys; sys.exit(3)", "w.py:5: SystemExit: 3"),
    ("raise BaseException('x')", "w.py:5: BaseException: x"),
    ("raise StopIteration(3)", "RuntimeError: coroutine raised StopIteration"),
    ("await t.ask('hello')", "w.py:5: Misuse: t.ask takes what t.call returns"),
    ("t.call('a', 3)", "w.py:5: Misuse: the prompt must be a text or a list of messages"),
    ("t.call('a', 'x', temprature=1)", "w.py:5: TypeError: a call has no setting temprature; known are tools"),
    ("t.call('a', 'x', temperature=float('inf'))", "settings of a call: NaN and infinity are not JSON"),
    ("t.call('a', '\\udc00')", "a lone surrogate"),
    ("t.call('a', 'x', schema=int | parley.World)", "no schema can be made of"),
    ("len(t.one('a', 'x'))", "TypeError: object of type 'coroutine' has no len(). Is an await missing?"),
    ("await t.fork(-1, print)", "want 0 or more strands"),
    ("await t.fork(t.one('a', 'x'))", "give async functions, not coroutines"),
    ("await t.do(3)", "t.do(3): the first argument must be a function"),
    ("await t.do(print, {1})", "the arguments of builtins.print: a set is not JSON"),
    ("t.rand.int_n(0)", "w.py:5: ValueError: int_n(0): want 1 to 2**63"),
    ("await t.talk('a').say()", "talk.say without a text"),
]


@pytest.mark.parametrize(("play", "want"), ERRORS, ids=[p[:30] for p, _ in ERRORS])
def test_errors_of_worlds(start: Start, play: str, want: str) -> None:
    e = start(play)
    got = e.begin()
    assert want in got["error"]["text"], got
    assert "parley/episode.py" not in got["error"].get("trace", "") and "parley/world.py" not in got["error"].get("trace", "")
    assert e.begin("g", params={"x": 1})["error"]["text"].startswith("Invalid: x: unknown")  # the worker goes on


def test_phases_are_between_the_notes(start: Start) -> None:
    got = start("t.note('n', 1)\nt.phase('round 1')\nawait t.one('a', 'x')\n").begin()
    assert got["notes"] == [{"kind": "n", "data": 1}, {"kind": "phase", "data": "round 1"}]
    assert "name must be a text" in start("t.phase(1)\n").begin()["error"]["text"]


def test_errors_keep_notes_and_end_the_episode(start: Start) -> None:
    e = start("t.note('n', 1)\nawait t.fork(bad, bad)\n").begin
    assert "name 'bad' is not defined" in e()["error"]["text"]
    e2 = start("async def bad(t):\n    t.note('n', 1)\n    raise ValueError('no')\nasync def ok(t): await t.one('a', 'x')\nawait t.fork(ok, bad)\n")
    assert e2.begin() == {"fork": 2}
    assert "ask" in e2.ask("strand", episode="e", strand="0.0/", of="", index=0)
    got = e2.ask("strand", episode="e", strand="0.1/", of="", index=1)
    assert got["notes"] == [{"kind": "n", "data": 1}] and got["error"]["text"] == "w.py:7: ValueError: no"
    assert "no episode" in e2.reply("x", strand="0.0/")["error"]["text"]


def test_tables_of_other_strands(start: Start) -> None:
    e = start("async def f(own): await t.one('a', 'x')\nawait t.fork(f)\n")
    e.begin()
    got = e.ask("strand", episode="e", strand="0.0/", of="", index=0)
    assert "w.py:5: Misuse: t.ask at the table of another strand" in got["error"]["text"]


def test_acts_that_raise(start: Start) -> None:
    """A function knows the key of its act, and the world what the function raised."""
    e = start("""
        async def later(): return parley.act_key()
        def bad(): raise ValueError("no")
        keys = [await t.do(parley.act_key), await t.do(later)]
        try:
            await t.do(bad)
        except parley.Failed as f:
            return parley.Outcome(data=[keys, f.kind, str(f)])
    """)  # fmt: skip
    e.begin()
    for key in ("r.0.0.0.0", "r.0.0.1.0"):
        got = e.ask("act", episode="e", strand="", index=0, act={}, key=key)
        assert got == {"result": key}
        e.reply({"json": key})
    raised = e.ask("act", episode="e", strand="", index=0, act={}, key="k")["error"]["text"]
    assert raised == "w.py:7: ValueError: no"
    end = e.reply({"failed": "raised", "why": raised})["end"]["data"]
    assert end == [["r.0.0.0.0", "r.0.0.1.0"], "raised", "W.play.<locals>.bad failed: w.py:7: ValueError: no"]
    with pytest.raises(parley.Misuse, match="is for a function that t.do runs"):
        parley.act_key()


WRONG = [
    ("await t.one('b', 'x')", "w.py:5: Misuse: the world asks the seat 'b', which seats() does not list: want one of a"),
    ("await t.one(3, 'x')", "w.py:5: Misuse: the seat 3 must be a text"),
    ("t.talk('b')", "w.py:5: Misuse: the world asks the seat 'b'"),
    ("await t.do(len, '', seat='b')", "w.py:5: Misuse: the world asks the seat 'b'"),
    ("await t.one('a', [{'role': 'king', 'content': 'x'}])", "w.py:5: Misuse: a message has the role 'king': want one of system, user, assistant, tool"),
    ("return parley.Outcome({'points': {'b': 1}})", "w.py:4: the outcome of W.play: the score points is for the seat 'b', which seats() does not list: want one of a"),
]


@pytest.mark.parametrize(("play", "want"), WRONG, ids=[p for p, _ in WRONG])
def test_names_that_are_wrong(start: Start, play: str, want: str) -> None:
    """An error about a seat or a role names the line."""
    assert start(play + "\n").begin()["error"]["text"].startswith(want)


def test_wrong_requests(start: Start) -> None:
    e = start("await t.one('a', 'x')\n")
    e.begin()
    assert "waits for 1 replies, not 2" in e.reply("a", "b")["error"]["text"]
    assert "no strand '9.9/'" in e.reply("a", strand="9.9/")["error"]["text"]
    assert "no fork with the index 0" in e.ask("strand", episode="e", strand="0.0/", of="", index=0)["error"]["text"]
    deep = b"[" * 100_000 + b"]" * 100_000
    e.sock.sendall(b'{"id":99,"op":"replies","episode":"e","strand":"","replies":[{"json":%b}]}\n' % deep)
    assert "the reply cannot be read" in e.wait(99)["error"]["text"]
    assert e.reply("a") == {"end": {}}
    long = "x" * 3_000_000
    assert e.begin("big")["ask"] and e.reply(long, episode="big") == {"end": {}}


LOADS = [
    ("import numpyy", "W", "w.py:1: ModuleNotFoundError: No module named 'numpyy'"),
    ("def f(:\n", "W", "w.py:1: SyntaxError: "),
    ("x = 1/0", "W", "w.py:1: ZeroDivisionError"),
    ("import parley\nclass Auktion(parley.World): pass", "Auction", "w.py: no class Auction; did you mean Auktion?"),
    ("import parley", "W", "w.py: no class W; it has no world"),
    ("class W: pass", "W", "w.py: W is not a world: write class W(parley.World)"),
    ("import parley\nclass W(parley.World): pass", "W", "W has no method play"),
    ("import parley\nclass W(parley.World):\n    def play(self, t): pass", "W", "W.play must be async"),
    ("import parley\nclass W(parley.World):\n    async def play(self, t): yield 1", "W", "W.play has a yield"),
    ("import parley\nclass W(parley.World):\n    x: set\n    def seats(self): return []\n    async def play(self, t): pass", "W", "the param x has the type <class 'set'>"),
    ("import parley\nclass W(parley.World):\n    version = 0\n    def seats(self): return []\n    async def play(self, t): pass", "W", "W.version is 0: want a whole number from 1"),
]


@pytest.mark.parametrize(("whole", "cls", "want"), LOADS, ids=[w[-30:] for _, _, w in LOADS])
def test_worlds_that_cannot_be_loaded(start: Start, whole: str, cls: str, want: str) -> None:
    assert want in start(whole=whole, cls=cls).hello["error"]["text"]


@pytest.mark.parametrize(("hint", "fails"), [("parley.Outcome", True), ("'Outcome'", True), ("parley.Outcome | None", False), ("None", False)])
def test_forgotten_return(start: Start, hint: str, fails: bool) -> None:
    """A play that promises an outcome returns one."""
    got = start(whole=f"import parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t) -> {hint}: pass\n").begin()
    if fails:
        assert got["error"]["text"].startswith("w.py:4: the outcome of W.play: play returned None")
    else:
        assert got == {"end": {}}


def test_other_version(start: Start) -> None:
    assert "the engine speaks version 2" in start("pass", version=2).hello["error"]["text"]


def test_seats_that_are_wrong(start: Start) -> None:
    for body, want in {"'ab'": "want a list of texts", "[1]": "want a list of texts", "1/0": "w.py:3: ZeroDivisionError"}.items():
        e = start(whole=f"import parley\nclass W(parley.World):\n    def seats(self): return {body}\n    async def play(self, t): pass\n")
        assert want in e.ask("seats", params={})["error"]["text"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_loops_are_ended(start: Start) -> None:
    e = start("import itertools\nfor i in itertools.count():\n    try: i += 1\n    except Exception: pass\n", limit=0.3)
    for episode in ("e", "f"):
        assert re.search(r"w\.py:[678]: Stuck: the step takes longer than 0\.3 seconds", e.begin(episode)["error"]["text"])
    assert "a step has run for" in e.end()


def test_only_slow_steps_are_ended(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A step that was ended does not shorten the limit of another one in the same function."""
    watchdog = _watchdog.Watchdog()
    watchdog._limit = 2
    monkeypatch.setattr(guard.fold, "table", object())
    monkeypatch.setattr(guard.fold, "serial", 1)
    for serial in (1, 2, 3):
        guard.fold.serial = serial
        for _ in range(20):  # the first comes at any moment of the first twentieth of the limit
            watchdog._tick(0, sys._getframe())
        with pytest.raises(parley.errors.Stuck, match="longer than 2 seconds"):
            watchdog._tick(0, sys._getframe())
    assert capsys.readouterr().err.count("a step has run for") == 1


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal here")
def test_says_where_it_is(start: Start) -> None:
    """The engine asks a worker whose step nothing interrupts, and it answers between its answers."""
    e = start("import itertools\nsum(itertools.repeat(0))\n")
    e.send("begin", episode="e", params={}, lineup={"a": "x"}, seed="1", deal=0)
    found = b""
    while b'w.py", line 6 in play' not in found:  # the step may not have begun
        e.process.send_signal(signal.SIGUSR1)
        found = b""
        while b"_run_module_as_main" not in found:
            line = e.stream.readline()
            assert line, "the worker has ended"
            found += line


@pytest.mark.parametrize("limit", ["0", "True", "'5'", "float('inf')"])
def test_wrong_limits(start: Start, limit: str) -> None:
    e = start(whole=f"import parley\nclass W(parley.World):\n    step_limit = {limit}\n    def seats(self): return ['a']\n    async def play(self, t): pass\n")
    assert e.hello["error"]["text"].startswith("w.py:2: W.step_limit is ") and "want a number of seconds" in e.hello["error"]["text"]


def test_prints_and_interrupts(start: Start) -> None:
    e = start("print('hello')\nimport sys, os\nsys.stdout.write('out\\n')\nos.write(1, b'raw\\n')\nawait t.one('a', 'x')\n")
    e.begin()
    e.process.send_signal(signal.SIGINT)
    assert e.reply("x") == {"end": {}}
    assert sorted(e.end().split()) == ["hello", "out", "raw"]


def test_the_same_steps_in_two_processes(start: Start) -> None:
    play = "x = {'b', 'a', 'c'}\nt.note('set', list(x))\nawait t.one('a', f'{t.rand.perm(10)} {hash(\"x\")}')\n"
    assert start(play).begin(seed=2**64 - 1, deal=5) == start(play).begin(seed=2**64 - 1, deal=5)


@pytest.mark.parametrize(("seats", "measures", "want"), [
    ("5", "[]", "w.py:2: seats() returned 5: want a list of texts"),
    ("'abc'", "[]", "w.py:2: seats() returned 'abc': want a list of texts"),
    ("['a', 3]", "[]", "w.py:2: seats() returned ['a', 3]: want a list of texts"),
    ("['a']", "None", "w.py:2: measures() returned None: want a list of parley.Measure"),
    ("['a']", "['points']", "w.py:2: measures() returned ['points']: want a list of parley.Measure"),
])  # fmt: skip
def test_lists_of_a_world(start: Start, seats: str, measures: str, want: str) -> None:
    e = start(whole=f"import parley\nclass W(parley.World):\n    def seats(self): return {seats}\n    def measures(self): return {measures}\n    async def play(self, t): pass\n")
    assert e.ask("seats", params={})["error"]["text"] == want


def test_memory_is_reported(start: Start) -> None:
    """So that the engine can replace a worker that leaks, also if it leaks much in each episode."""
    e = start("pass")
    got = [e.begin(str(i)) for i in range(10)]
    assert [i for i, step in enumerate(got) if step.get("memory", 0) > 0] == [4, 9]
