"""What needs the program: asking, reading runs, playing from a script. And finding the program."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import parley
from parley import _progress, _run, binary, errors


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return binary.find()
    except parley.Error:
        pytest.skip("the program parley is not installed")


@pytest.fixture(scope="module")
def run_file(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    plan = {"kind": "secrets", "seed": 1, "episodes": 5, "agents": {"a": {"model": "sim/small"}, "b": {"model": "sim/large"}}, "lineup": {"first": "a", "second": "b"}}
    (folder / "plan.yaml").write_text(json.dumps(plan))
    subprocess.run([program, "run", str(folder / "plan.yaml"), "--quiet"], check=True)
    return folder / "plan.parley"


def test_open(run_file: Path) -> None:
    run = parley.open(run_file)
    episodes = list(run.episodes())
    assert [e["episode"] for e in episodes] == [0, 1, 2, 3, 4] and {e["state"] for e in episodes} == {"ended"}
    calls = list(run.calls())
    assert len(calls) == 30 == sum(e["calls"] for e in episodes)
    for name in ("input_tokens", "output_tokens"):
        assert sum(c[name] for c in calls) == sum(e[name] for e in episodes) > 0
    assert {m["role"] for m in run.messages()} == {"system", "user", "assistant"}
    assert "points" in {s["name"] for s in run.scores()}
    assert {tuple(c) for c in run.calls("seat", "text")} == {("seat", "text")}
    with pytest.raises(binary.ProgramError, match="did you mean text"):
        list(run.calls("txt"))
    for _ in run.calls():
        break  # a reader that stops early leaves nothing behind
    with pytest.raises(FileNotFoundError):
        parley.open(run_file.with_name("none.parley"))
    (run_file.parent / "empty.parley").touch()
    for name, why in {"plan.yaml": "is a plan, not a run file: parley run", "empty.parley": "not a run file: it is empty", ".": "is a folder"}.items():
        with pytest.raises(binary.ProgramError, match=why):
            parley.open(run_file, run_file.parent / name)


def test_table(run_file: Path) -> None:
    run = parley.open(run_file)
    reveals = list(run.table("reveals"))
    assert reveals and {r["whose"] for r in reveals} <= {"own", "other"}
    # The same as in the recorded outcomes: the first reveal of each seat.
    own = {(r["episode"], r["seat"], r["message"], r["form"]) for r in reveals if r["whose"] == "own"}
    for e in run.episodes():
        for talk in json.loads(e["data"])["conversations"]:
            for first in talk["reveals"]:
                assert (e["episode"], first["seat"], first["message"], first["form"]) in own
    assert {tuple(r) for r in run.table("reveals", "seat", "text")} == {("seat", "text")}
    if importlib.util.find_spec("pandas"):
        assert len(run.table("reveals").pandas()) == len(reveals)
    with pytest.raises(binary.ProgramError, match="reveals"):
        list(run.table("reveal"))


def test_frames(run_file: Path) -> None:
    run = parley.open(run_file)
    for name, rows in {"pandas": 30, "polars": 30, "arrow": 30}.items():
        pytest.importorskip({"arrow": "pyarrow"}.get(name, name))
        assert len(getattr(run.calls(), name)()) == rows
        few = getattr(run.calls("text", "seat"), name)()
        assert list(few.column_names if name == "arrow" else few.columns) == ["seat", "text"]


def test_frames_without_their_libraries(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, remedy in {"pandas": "pip install pandas pyarrow", "polars": "pip install polars"}.items():
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(parley.Error, match=f"{name} is not installed: {remedy}, or iterate"):
            getattr(parley.open(run_file).calls(), name)()


def test_report(run_file: Path, tmp_path: Path) -> None:
    report = parley.open(run_file).report()
    shown = report._repr_html_()
    assert shown.startswith('<iframe srcdoc="') and 'sandbox="allow-scripts"' in shown and "<script" not in shown
    report.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").read_text() == report.html


def test_simulated_is_told(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask() -> None:
        parley.ask("x")

    def ask_many() -> None:
        parley.map([{"prompt": "x", "model": "sim/large"}, "y"], progress=False)

    for first in (ask, ask_many):
        monkeypatch.setattr("parley._ask._Notice.simulated", False)
        with warnings.catch_warnings():  # nobody is told who names the model
            warnings.simplefilter("error")
            parley.ask("x", model="sim/small")
            parley.ask({"prompt": "x", "model": "sim/small"})
            parley.map([{"prompt": "x", "model": "sim/small"}], progress=False)
        with pytest.warns(UserWarning, match="answered by sim/small, which is simulated; name a model with model=") as told:
            first()
            ask()
            ask_many()
        assert [w.filename for w in told] == [__file__]


def test_ask(program: str, tmp_path: Path) -> None:
    assert parley.ask("What is a parley?").text

    @dataclass
    class Colour:
        name: str
        bright: bool

    one = parley.ask({"prompt": "A colour?"}, schema=Colour)
    assert isinstance(one.value, Colour) and one.usage["output"] > 0
    out = tmp_path / "answers.jsonl"
    many = parley.map(["one", {"id": "x", "prompt": "two"}, {"prompt": 3}], model="sim/small", max_tokens=20, out=out)
    assert [a.id for a in many] == [0, "x", 2] and [a.ok for a in many] == [True, True, False] and many[2].failed == "bad_request"
    assert [a.text for a in parley.map(["one"], model="sim/small", max_tokens=20, out=out)] == [many[0].text]
    tiers = parley.map(["one", {"prompt": "two", "tier": "priority"}], model="sim/small", tier="flex")
    assert [a.record["response"]["tier"] for a in tiers] == ["flex", "priority"]
    assert parley.map([]) == []
    with pytest.raises(binary.ProgramError, match="nosuch"):
        parley.ask("x", model="nosuch/model")
    with pytest.raises(parley.Failed, match="bad_request"):
        parley.ask({"prompt": 3})


def test_budget_of_map(program: str, tmp_path: Path) -> None:
    """What the budget does not allow is an answer that says so, and is asked with a larger budget. It counts what is in the file."""
    prompts = [f"Question {i}" for i in range(300)]
    out = tmp_path / "answers.jsonl"
    first = parley.map(prompts, model="sim/small", max_tokens=50, budget=0.0005, out=out)
    assert [a.id for a in first] == list(range(300)) and {a.failed for a in first} == {"", "budget"}
    assert all("budget" in a.message for a in first if not a.ok)
    again = parley.map(prompts, model="sim/small", max_tokens=50, budget=0.0005, out=out)
    assert 0 < sum(a.record["response"]["metadata"]["cost"] for a in again if a.ok) <= 0.0005
    assert {a.failed for a in parley.map(prompts, model="sim/small", max_tokens=50, budget=0.0005, samples=2)} == {"", "budget"}
    again = parley.map((p for p in prompts), model="sim/small", max_tokens=50, budget=1, out=out)
    assert all(a.ok for a in again)
    assert [b.text for a, b in zip(first, again) if a.ok] == [a.text for a in first if a.ok]


class Lab:
    """A model server of this process that does something at its third request, and answers it after that."""

    def __init__(self, third: Any) -> None:
        lab = self
        self.served = 0

        class Answers(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                lab.served += 1
                if lab.served == 3:
                    third()
                body = b'{"model":"x","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"yes"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.options = {"model": "lab/x", "base_url": f"http://127.0.0.1:{self.server.server_port}/v1", "concurrency": 1, "progress": False}
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C arrives, also if a shell runs the tests in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("file", [False, True])
def test_interrupt_of_map(ctrl_c: None, program: str, tmp_path: Path, file: bool) -> None:
    """What was answered, and so paid for, before Ctrl-C is in the exception."""
    lab = Lab(lambda: os.kill(os.getpid(), signal.SIGINT))
    with lab.server, pytest.raises(parley.Interrupted, match="of 3,000 requests were answered: the attribute answers") as e:
        parley.map([f"Question {i}" for i in range(3000)], out=tmp_path / "answers.jsonl" if file else None, **lab.options)
    answers = e.value.answers
    assert isinstance(e.value, KeyboardInterrupt) and [a.id for a in answers] == list(range(3000))
    assert sum(a.ok for a in answers) == lab.served >= 3 and {a.failed for a in answers} == {"", "canceled"}


def test_interrupt_before_the_program_runs(ctrl_c: None, program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C is passed on whenever it comes, and is a KeyboardInterrupt again afterwards."""
    start = binary.start

    def interrupted(command: list[str]) -> Any:
        process = start(command)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(binary, "start", interrupted)
    lab = Lab(lambda: None)
    with lab.server, pytest.raises(parley.Interrupted) as e:
        parley.map([f"Question {i}" for i in range(3000)], **lab.options)
    assert len(e.value.answers) == 3000 and "canceled" in {a.failed for a in e.value.answers}
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_again(ctrl_c: None, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C between the programs, and while the second lists the requests, loses no answer."""
    start = binary.start

    def interrupted(command: list[str]) -> Any:
        if "--digests" in command:
            os.kill(os.getpid(), signal.SIGINT)
        process = start(command)
        if "--digests" in command:
            os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(binary, "start", interrupted)
    lab = Lab(lambda: os.kill(os.getpid(), signal.SIGINT))
    with lab.server, pytest.raises(parley.Interrupted) as e:
        parley.map([f"Question {i}" for i in range(3000)], out=tmp_path / "answers.jsonl", **lab.options)
    assert len(e.value.answers) == 3000 and sum(a.ok for a in e.value.answers) == lab.served >= 3
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_interrupt_of_a_misuse(ctrl_c: None, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of the file to other questions are not returned if Ctrl-C comes while the program refuses its flags."""
    out, start = tmp_path / "answers.jsonl", binary.start
    parley.map(["a", "b"], model="sim/small", out=out, progress=False)

    def interrupted(command: list[str]) -> Any:
        process = start(command)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(binary, "start", interrupted)
    with pytest.raises(parley.Interrupted) as e:
        parley.map(["other", "b"], model="nosuch/small", out=out, progress=False)
    assert [a.failed for a in e.value.answers] == ["canceled", "canceled"]


def test_interrupt_before_the_engine_runs(ctrl_c: None, program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while parley.run starts the program is passed on to it."""
    start = binary.start

    def interrupted(*args: Any) -> Any:
        process = start(*args)
        os.kill(os.getpid(), signal.SIGINT)
        return process

    monkeypatch.setattr(binary, "start", interrupted)

    class W(parley.World):
        def seats(self) -> list[str]:
            return ["a"]

        async def play(self, t: parley.Table) -> None:
            await t.one("a", "x")

    with pytest.raises(parley.Interrupted) as e:
        parley.run(W, agents={"s": "sim/small"}, episodes=100_000, out=tmp_path / "r.parley", progress=False)
    assert isinstance(e.value, KeyboardInterrupt) and e.value.run.code == 4


def test_interrupt_of_run(ctrl_c: None, program: str, tmp_path: Path) -> None:
    """Ctrl-C finishes the calls in flight. The exception has what was played, and the next call goes on."""
    lab = Lab(lambda: os.kill(os.getpid(), signal.SIGINT))
    plan: Any = {"agents": {"s": "lab/x"}, "episodes": 4, "out": tmp_path / "r.parley", "progress": False, "limits": {"concurrency": 1}}
    plan["providers"] = {"lab": {"dialect": "openai", "base_url": lab.options["base_url"]}}
    with lab.server:
        with pytest.raises(parley.Interrupted, match="Call parley.run again") as e:
            parley.run("secrets", **plan)
        played = e.value.run
        assert played.code == 4 and played.summary["calls"]["total"] == lab.served >= 3
        done = parley.run("secrets", **plan)
    assert done.code == 0 and f", {played.summary['calls']['total']} of the calls before;" in str(done)


def test_ids_that_are_no_ids(program: str) -> None:
    """If the budget ends, each request has its own record, also if ids are used twice or are no ids."""
    requests = [{"id": None, "prompt": "zero"}, {"id": True, "prompt": "one"}, {"id": "x", "prompt": "two"}, {"id": "x", "prompt": "three"}, *(f"more {i}" for i in range(200))]
    answers = parley.map(requests, model="sim/small", max_tokens=50, budget=0.0005, progress=False)
    whole = parley.map(requests, model="sim/small", max_tokens=50, progress=False)
    assert len(answers) == 204 and answers[-1].failed == "budget"
    for got, want in zip(answers, whole, strict=True):
        assert got.failed == "budget" or (got.id, got.text, got.message) == (want.id, want.text, want.message)
    assert [a.failed for a in answers[1:4:2]] == ["bad_request", "bad_request"] and "request 3" in answers[3].message


def test_map_into_answers_to_other_questions(program: str, tmp_path: Path) -> None:
    """The file may have answers to other questions with the same ids: they answer nothing. Those to the same questions still do."""
    fixed: Any = {"max_tokens": 50, "out": tmp_path / "answers.jsonl", "progress": False}
    old = parley.map([f"alpha {i}" for i in range(200)], model="sim/small", **fixed)
    prompts = [f"alpha {i}" if i % 4 == 3 else f"beta {i}" for i in range(200)]
    with pytest.raises(binary.ProgramError) as e:
        parley.map(prompts, model="nosuch/small", **fixed)
    assert e.value.answers == []
    spent = sum(a.record["response"]["metadata"]["cost"] for a in old)
    new: list[Any] = []
    for room in (1e-7, 0.0002):
        new = parley.map(prompts, model="sim/small", budget=spent + room, **fixed)
        assert [a.id for a in new] == list(range(200)) and {a.failed for a in new} == {"", "budget"}
        assert [a.text for a in new[3::4]] == [a.text for a in old[3::4]]
        assert not {a.record["digest"] for i, a in enumerate(new) if a.ok and i % 4 != 3} & {a.record["digest"] for a in old}
    assert any(a.ok for i, a in enumerate(new) if i % 4 != 3)
    assert all(a.ok for a in parley.map(prompts, model="sim/small", **fixed))


def test_map_whose_program_is_killed(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers of the file to the same questions are in the error, whoever asked them. Those to other questions are not."""
    out = tmp_path / "answers.jsonl"
    old = parley.map(["a", "b", "c"], model="sim/small", out=out, progress=False)
    fake = tmp_path / "parley"
    fake.write_text(f"""#!/bin/sh\ncase "$*" in *--digests*) exec '{program}' "$@";; *) kill -9 $$;; esac\n""")
    fake.chmod(0o755)
    monkeypatch.setenv("PARLEY_BINARY", str(fake))
    with pytest.raises(binary.ProgramError) as e:
        parley.map(["a", "changed", "c", {"prompt": 3}], model="sim/small", out=out, progress=False)
    assert [(a.text, a.failed) for a in e.value.answers] == [(old[0].text, ""), ("", "canceled"), (old[2].text, ""), ("", "bad_request")]
    assert e.value.answers[3].message == "request 3: prompt: found number, want string"


def test_map_whose_program_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers that the program gave before are in the error."""
    fake = tmp_path / "parley"
    listed = """*--digests*) printf '{"id":0,"digest":"a"}\\n{"id":1,"digest":"b"}\\n'; exit 0;;"""
    fake.write_text(f"""#!/bin/sh\ncase "$*" in {listed} esac\nprintf '{{"id":0,"digest":"a","response":{{"text":"yes"}}}}\\n{{"id":1,"resp'; echo broken >&2; exit 5\n""")
    fake.chmod(0o755)
    monkeypatch.setenv("PARLEY_BINARY", str(fake))
    with pytest.raises(binary.ProgramError, match="^broken$") as e:
        parley.map(["a", "b"])
    assert [(a.text, a.failed, a.message) for a in e.value.answers] == [("yes", "", ""), ("", "canceled", "broken")]


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"prompt": "\ud83d"}, "request 1: a text has a half of a character"),
        ({"prompt": float("nan")}, "request 1: NaN"),
        (5, "request 1 is a int: want a text or a dict"),
        ({"prompt": "x", "files": ["x.pdf"]}, "request 1: files: give their content as parts of messages"),
    ],
)
def test_bad_requests_of_map(program: str, request_: Any, text: str) -> None:
    with pytest.raises(parley.Misuse, match=text):
        parley.map(["fine", request_])


def test_requests_of_map_are_named_by_number(program: str) -> None:
    answers = parley.map(["fine", {"prompt": 3}, {"promt": "x"}], model="sim/small")
    assert [a.message for a in answers[:2]] == ["", "request 1: prompt: found number, want string"]
    assert answers[2].message.startswith('request 2: unknown field "promt"; did you mean prompt')


def test_misuse_of_map(program: str) -> None:
    with pytest.raises(parley.Misuse, match="use parley.ask"):
        parley.map("one text")
    for budget in (0, -1, float("nan"), "two"):
        with pytest.raises(parley.Misuse, match="want an amount above 0"):
            parley.map(["fine"], budget=budget)  # type: ignore[arg-type]
    with pytest.raises(parley.Misuse, match="samples 'x': want a whole number"):
        parley.map(["fine"], samples="x")
    with pytest.raises(binary.ProgramError, match='^parley: unknown option max_token, did you mean "max_tokens"[?]$'):
        parley.map(["fine"], model="sim/small", max_token=5)
    with pytest.raises(parley.Failed, match="request 0: temperature: found string, want number"):
        parley.ask({"prompt": "x", "temperature": "hot"}, model="sim/small")


def test_the_program_stops_with_its_owner(program: str, tmp_path: Path) -> None:
    """It drains when standard input ends: because this process has ended, or as an interrupt."""
    (tmp_path / "requests.jsonl").write_text('{"prompt": "x"}\n' * 100_000)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # a provider that never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        process = binary.start([program, "ask", str(tmp_path / "requests.jsonl"), "--model=lab/x", "--dialect=openai", f"--base-url={url}", "--concurrency=1"])
        assert process.stderr is not None
        silent.accept()  # it asks
        binary.interrupt(process)
        while b"stopping" not in process.stderr.readline():
            assert process.poll() is None
        while process.poll() is None:  # signals that follow each other at once count as one
            binary.interrupt(process)
            time.sleep(0.2)
        assert process.returncode == 4
        binary.close(process)


SCRIPT = """
import parley

class Pair(parley.World):
    "Two talk."
    rounds: int = 2
    def seats(self): return ["a", "b"]
    def measures(self): return [parley.Measure("length", low=0, high=100_000)]
    async def play(self, t):
        texts = []
        for _ in range(self.rounds):
            texts += [r.text for r in await t.ask(t.call("a", "Hi"), t.call("b", "Ho"))]
        size = await t.do(len, texts)
        return parley.Outcome({"length": size})

for episodes in (5, 8):
    done = parley.run(Pair, agents={"x": "sim/small"}, episodes=episodes, seed=3, out="run.parley", params={"rounds": 3})
    print(done.code, len(list(done.data.episodes())), {s["value"] for s in done.data.scores()})
"""


@pytest.mark.parametrize("loopback", [False, True])
def test_run_from_a_script(program: str, tmp_path: Path, loopback: bool) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {**os.environ, **({"PARLEY_LOOPBACK": "1"} if loopback else {})}
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["0 5 {6}", "0 8 {6}"], done.stderr


GUARDED = """
import datetime
import helper
from datetime import datetime as Moment

import parley

class Clock(parley.World):
    what: str = ""
    def seats(self): return ["a"]
    async def play(self, t):
        if self.what == "numpy":
            import numpy
            return parley.Outcome(data=numpy.random.rand())
        return parley.Outcome(data=str(eval(self.what)))

real = datetime, Moment
for what in ("Moment.now()", "datetime.date.today()", "helper.today()", "numpy"):
    done = parley.run(Clock, agents={"x": "sim/small"}, seed=3, out=f"{len(what)}.parley", params={"what": what}, progress=False)
    print(done.code, done.failures.splitlines()[-1].partition(":")[0], done.failures.count(" is not allowed in a world"))
assert (datetime, Moment, helper.date) == (*real, datetime.date)
"""


def test_guard_in_a_script(program: str, tmp_path: Path) -> None:
    """The script that plays a world is guarded as a worker is, and has its own datetime again afterwards."""
    pytest.importorskip("numpy")
    (tmp_path / "script.py").write_text(GUARDED)
    (tmp_path / "helper.py").write_text("from datetime import date\ndef today(): return date.today()\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["1 parley.errors.Impure 1"] * 4 and done.returncode == 0, done.stderr


def test_only_the_program_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without the token is closed, and there is no second one with it."""
    monkeypatch.setenv("PARLEY_LOOPBACK", "1")
    link = _run._Link()
    _, host, port, token = link.name.split(":")
    code = f"""
import socket
for token in (b"", b"{"A" * len(token)}\\n", b"{token}\\n"):
    s = socket.create_connection(("{host}", {port}))
    s.sendall(token)
    s.shutdown(socket.SHUT_WR)
    print(s.recv(10))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    sock = link.connected(process)
    assert sock is not None
    assert link._ours.fileno() == -1, "the port still listens"  # connecting to it proves nothing: another program may have it by now
    sock.sendall(b"hello")
    sock.close()
    assert process.communicate(timeout=60)[0].split() == [b"b''", b"b''", b"b'hello'"]
    ended = _run._Link()
    assert ended.connected(process) is None
    ended.close()


def test_places_and_summaries() -> None:
    assert errors.place("/home/me/auction.py", 12) == "auction.py:12" and errors.place("/tmp/ipykernel_17/938221006.py", 4) == "cell:4"
    done = parley.Summary("a.parley", 1, {"state": "complete", "episodes": {"total": 3000, "complete": 2999, "failed": 1}, "calls": {"total": 12}, "acts": {"total": 1300}, "cost_usd": 0.00003})
    assert str(done) == "complete: 2,999 of 3,000 episodes, 1 failed; 12 calls, 1,300 acts; $0.00003" and "a.parley" in repr(done) and str(parley.Summary("a", 4, {}))


PLAN = """kind: secrets
agents: {a: {model: sim/small}, b: {model: sim/large}}
lineup: {first: a, second: b}
episodes: 3
"""


def test_kinds_and_plans(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kinds that come with Parley and plan files are played as the command line plays them. A full file asks nothing."""
    monkeypatch.chdir(tmp_path)
    done = parley.run("secrets", agents={"a": "sim/small"}, episodes=2, out="kind.parley", params={"messages": 2}, progress=False)
    assert done.code == 0 and str(done).startswith("complete: 2 of 2 episodes; 8 calls; $")
    assert str(parley.run("secrets", agents={"a": "sim/small"}, episodes=2, out="kind.parley", params={"messages": 2}, progress=False)).startswith("complete: 2 of 2 episodes; 8 calls, all of them before: nothing was asked; $")
    assert os.listdir(tmp_path) == ["kind.parley"]
    with pytest.raises(binary.ProgramError, match="^parley: kind: wants one of .*; did you mean secrets"):
        parley.run("secret", agents={"a": "sim/small"}, out="none.parley", progress=False)
    with pytest.raises(parley.Misuse, match="name the run file"):
        parley.run("secrets", agents={"a": "sim/small"})
    Path("plan.yaml").write_text(PLAN)
    assert len(list(parley.run("plan.yaml", progress=False).data.episodes())) == 3 and Path("plan.parley").exists()
    other = parley.run(Path("plan.yaml"), agents={"a": "sim/large"}, episodes=1, params={"messages": 2}, out="other.parley", progress=False)
    assert {(c["agent"], c["model"]) for c in other.data.calls()} == {("a", "large"), ("b", "large")} and other.summary["calls"]["total"] == 4
    with pytest.raises(binary.ProgramError, match="none.yaml: there is no such file"):
        parley.run("none.yaml", progress=False)


def test_plan_with_code(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that names code needs permission, and the error says how to give it from Python. Files are beside the run file."""
    monkeypatch.chdir(tmp_path)
    Path("w.py").write_text("import parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t): return parley.Outcome({'x': 1})\n")
    Path("w.yaml").write_text("kind: w.py:W\nagents: {a: {model: sim/small}}\n")
    with pytest.raises(binary.ProgramError) as e:
        parley.run("w.yaml", progress=False)
    remedy = str(e.value).partition("If you trust it: add flags=")[2]
    assert parley.run("w.yaml", flags=json.loads(remedy), progress=False).code == 0
    Path("e.py").write_text("import parley\nclass E(parley.Env):\n    def reset(self, seed): return 'x'\n    def step(self, action): return parley.Step(done=True)\n")
    done = parley.run("rollout", agents={"a": "sim/small"}, params={"env": "e.py:E"}, out="e.parley", flags={"trust": ["code=e.py"]}, progress=False)
    assert done.code == 0


def test_notebook(program: str, run_file: Path, tmp_path: Path) -> None:
    """The last line of a cell shows a small table, whose texts are text."""
    assert len(parley.open(run_file, run_file)._repr_html_()) < 2000 and parley.open(run_file)._repr_html_().count("<tr>") == 2
    assert "<td style=\"text-align:left\">plan.parley</td>" in parley.open(run_file)._repr_html_()
    scores = [{"agent": "<script>", "score": "points", "mean": 1.23456, "interval": {"low": 1, "high": 2}, "n": 5}] * 30
    shown = parley.Summary("a/<b>.parley", 0, {"state": "complete", "agents": scores})._repr_html_()
    assert "&lt;b&gt;.parley" in shown and "&lt;script&gt;" in shown and "<script" not in shown and "1 to 2" in shown and "1.235" in shown
    assert "and 10 more" in shown and len(shown) < 10_000


def test_full_file_of_map(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that has all answers is not asked again, and the progress says so."""
    monkeypatch.setattr(_progress, "_place", lambda: "terminal")
    for want in ("answered 2 of 2", "answered 2 of 2, all of them before: nothing was asked"):
        parley.map(["a", "b"], model="sim/small", out=tmp_path / "answers.jsonl")
        assert capsys.readouterr().err.rstrip().endswith(want)


def test_errors_of_a_run(program: str, tmp_path: Path) -> None:
    class W(parley.World):
        def seats(self) -> list[str]:
            return ["a"]

        async def play(self, t: parley.Table) -> None: ...

    def said(code: int, **arguments: Any) -> str:
        with pytest.raises(parley.Error) as e:
            parley.run(W, **{"agents": {"x": "sim/small"}, "out": tmp_path / "run.parley", "progress": False, **arguments})
        assert "plan.yaml" not in str(e.value) and "|" not in str(e.value) and getattr(e.value, "code", 0) == code
        return str(e.value)

    assert said(2, seeed=4).startswith("parley: seeed: unknown key; did you mean seed")
    assert said(2, budget=-1, lineup={"q": "x"}).splitlines()[1].startswith("lineup.q: python:W has no such seat")
    assert said(0, budget=float("nan")) == "parley.run: budget: NaN and infinity are not JSON"
    assert said(0, episodes={1, 2}).startswith("parley.run: episodes: a set is not JSON")
    assert said(0, agents=["sim/small"]) == """parley.run: agents is ['sim/small']: want a dict such as {"small": "sim/small"}"""
    assert said(0, params="x") == "parley.run: params is 'x': want a dict"
    assert said(2, agents={"x": {"model": "sim/small", "temperature": 9}}) == "parley: agents.x.temperature: wants a number, 0 to 2, found the number 9"
    assert said(2, flags={"concurency": 1}) == 'parley: run: unknown flag --concurency, did you mean "--concurrency"?'
    assert _run._with_flags("parley: a.py has changed; --changed-code continues") == 'parley: a.py has changed; flags={"changed_code": True} continues'


@pytest.mark.parametrize(("world", "want"), [("none.py:W", "none.py: no such file"), ("none.py", "write 'none.py:CLASS'"), (3, "parley.run plays a class"), (int, "parley.run plays a class")])
def test_wrong_worlds(world: Any, want: str, tmp_path: Path) -> None:
    with pytest.raises(parley.Misuse, match=want):
        parley.run(world, agents={"x": "sim/small"}, out=tmp_path / "run.parley")


def test_failures_of_a_run(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run whose episodes fail says why, with the first traceback."""
    (tmp_path / "w.py").write_text("import parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t):\n        raise ValueError('oh') if t.rand.int_n(4) else KeyError('x')\n")
    done = parley.run(f"{tmp_path / 'w.py'}:W", agents={"x": "sim/small"}, episodes=20, seed=1, out=tmp_path / "run.parley")
    assert done.code == 1 and "of 20 that failed" in done.failures and "Traceback" in done.failures and "ValueError: oh" in done.failures and "1 other reason" in done.failures
    assert done.failures in capsys.readouterr().err


def test_scores_out_of_range(program: str, tmp_path: Path) -> None:
    """An episode whose score is outside of what its class declares fails, and says which and why."""
    (tmp_path / "w.py").write_text(
        "import parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    def measures(self): return [parley.Measure('x', low=0, high=1)]\n"
        "    async def play(self, t): return parley.Outcome({'x': 1.5})\n"
    )
    done = parley.run(f"{tmp_path / 'w.py'}:W", agents={"x": "sim/small"}, episodes=1, seed=1, out=tmp_path / "run.parley", progress=False)
    assert done.code == 1 and "the score x is 1.5, and its declared range is 0 to 1" in done.failures


def test_numbers_are_those_of_report(program: str, tmp_path: Path) -> None:
    """A summary has the means, intervals and independent counts of the report, and the tables have the same means."""
    done = parley.run("secrets", agents={"a": "sim/small"}, episodes=40, out=tmp_path / "run.parley", progress=False)
    told = json.loads(subprocess.run([program, "report", str(tmp_path / "run.parley"), "--json"], check=True, capture_output=True, text=True).stdout)
    rows = next(t["rows"] for t in told["tables"] if t["name"] == "scores")
    values: dict[str, dict[int, list[float]]] = {}
    for s in done.data.scores("name", "episode", "value"):
        values.setdefault(s["name"], {}).setdefault(s["episode"], []).append(s["value"])
    assert len(done.summary["agents"]) == len(rows) > 3
    for mine, row in zip(sorted(done.summary["agents"], key=lambda s: s["score"]), sorted(rows, key=lambda r: r["score"]), strict=True):
        mean = row["mean"]
        assert (mine["score"], mine["mean"], mine["n"]) == (row["score"], mean["value"], mean["n"]), (mine, row)
        assert mine["interval"] == {"low": mean["low"], "high": mean["high"]}, (mine, row)
        each = [sum(v) / len(v) for v in values[mine["score"]].values()]
        assert abs(sum(each) / len(each) - mine["mean"]) < 1e-9


def test_run_in_a_world(program: str, tmp_path: Path) -> None:
    class Inner(parley.World):
        def seats(self) -> list[str]:
            return ["a"]

        async def play(self, t: parley.Table) -> None:
            parley.run(Inner, agents={"x": "sim/small"}, out=tmp_path / "inner.parley", progress=False)

    done = parley.run(Inner, agents={"x": "sim/small"}, episodes=1, seed=1, out=tmp_path / "run.parley", progress=False)
    assert done.code == 1 and "cannot be called by a world" in str(list(done.data.episodes()))


def test_the_program_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "parley"
    fake.write_text("#!/bin/sh\necho no >&2; exit 5\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PARLEY_BINARY", str(fake))
    assert binary.find() == str(fake)
    with pytest.raises(binary.ProgramError, match="^no$") as e:
        binary.run(["x"])
    assert e.value.code == 5
    monkeypatch.setenv("PARLEY_BINARY", str(tmp_path / "none"))
    with pytest.raises(parley.Error, match="PARLEY_BINARY is"):
        binary.find()
    monkeypatch.delenv("PARLEY_BINARY")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert binary.find() == str(fake)


def test_progress_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    class Handle:
        def update(self, data: Any, raw: bool) -> None:
            shown.append(data)

    class Display:
        @staticmethod
        def display(data: Any, raw: bool, display_id: bool) -> Handle:
            shown.append(data)
            return Handle()

    class IPython:
        @staticmethod
        def get_ipython() -> Any:
            return type("Shell", (), {"kernel": 1})()

    monkeypatch.setitem(sys.modules, "IPython", IPython)
    monkeypatch.setitem(sys.modules, "IPython.display", Display)
    moments = iter([100.0, 100.1, 100.3, 100.35])
    monkeypatch.setattr(_progress, "time", type("Clock", (), {"monotonic": lambda: next(moments)}))
    p = _progress.Progress(True)
    for text in ("one", "skipped", "two"):
        p.show(text)
    p.show("three", final=True)
    assert shown == [{"text/plain": "one"}, {"text/plain": "two"}, {"text/plain": "three"}]
