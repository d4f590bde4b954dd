"""Worlds in Python on the real engine: permission, the commands of the guide, and one digest at any pace, number of workers and kill."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import parley
from parley import binary, errors

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kills processes")


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return binary.find()
    except errors.Error:
        pytest.skip("the program parley is not installed")


@pytest.fixture(scope="module")
def server(program: str) -> Iterator[str]:
    """A simulated provider over HTTP: it knows no world, so that both kinds get the same answers."""
    sim = subprocess.Popen([program, "sim", "--addr", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    assert sim.stdout is not None
    yield sim.stdout.readline().removeprefix("listening on ").strip()
    sim.send_signal(signal.SIGINT)
    sim.wait(600)


def environment(workers: int = 1) -> dict[str, str]:
    return {**os.environ, "PARLEY_PYTHON": sys.executable, "PARLEY_WORKERS": str(workers)}


def test_commands_of_the_guide(program: str, tmp_path: Path) -> None:
    for name in ("auction.py", "auction.yaml", "wordle.py", "wordle.yaml", "polite.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    guide = "".join((ROOT / "docs" / "how-to" / f"{page}.md").read_text(encoding="utf-8") for page in ("python-world", "python"))
    commands = re.findall(r"^    parley ((?:check|run|show|report|score) .*)$", guide, re.MULTILINE)
    assert len(commands) == 8
    for command in commands:
        args = command.split()
        if args[0] in ("check", "run"):  # nobody can be asked here
            refused = subprocess.run([program, *args], cwd=tmp_path, env=environment(), capture_output=True, text=True)
            place = {"auction.yaml": "auction.yaml:3:7: kind:", "wordle.yaml": "wordle.yaml:10:8: params.env:"}[args[1]]
            assert refused.returncode == 2 and f"{place} would run the code of" in refused.stderr
            args += ["--trust", "code=" + args[1].replace(".yaml", ".py")]
        done = subprocess.run([program, *args], cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_only_the_allowed_file_runs(program: str, tmp_path: Path) -> None:
    """Modules that lie around do not run in the place of Python's own."""
    mine, here = tmp_path / "mine", tmp_path / "here"
    for folder in (mine, here):
        folder.mkdir()
        for name in ("json.py", "socket.py", "parley.py"):
            (folder / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    for name in ("auction.py", "auction.yaml"):
        shutil.copy(EXAMPLES / name, mine)
    args = [program, "check", str(mine / "auction.yaml"), "--trust", f"code={mine / 'auction.py'}"]
    done = subprocess.run(args, cwd=here, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def plan(url: str, kind: str, folder: Path) -> Path:
    agents = {name: {"model": f"lab/{name}", "max_tokens": 60} for name in ("small", "large")}
    doc = {
        "kind": kind, "seed": 5, "episodes": 40, "agents": agents, "providers": {"lab": {"dialect": "openai", "base_url": url + "/v1"}},
        "lineup": {f"player{i + 1}": ("small", "large")[i % 2] for i in range(4)}, "params": {"players": 4, "rounds": 3, "mode": "targeted"},
    }  # fmt: skip
    file = folder / "plan.yaml"
    file.write_text(json.dumps(doc))
    return file


def play(program: str, file: Path, out: Path, workers: int, *flags: str, kill: Any = None) -> Any:
    code = EXAMPLES / "secret_words.py"
    args = [program, "run", str(file), "--out", str(out), "--json", "--trust", f"code={code}", "--allow-files", str(EXAMPLES), *flags]
    run = subprocess.Popen(args, env=environment(workers), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if kill is not None:
        kill(run)
    text, error = run.communicate(timeout=600)
    if run.returncode < 0:
        return None
    assert run.returncode == 0, error
    return json.loads(text)


def children(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True)
    return [int(p) for p in found.stdout.split()]


def test_one_digest(program: str, server: str, tmp_path: Path) -> None:
    want = play(program, plan(server, "secrets", tmp_path), tmp_path / "go.parley", 1)
    file = plan(server, f"{EXAMPLES}/secret_words.py:Secrets", tmp_path)
    for workers, flags in ((1, ()), (3, ("--concurrency", "1")), (2, ("--pace", "wave"))):
        got = play(program, file, tmp_path / f"{workers}.parley", workers, *flags)
        assert (got["digest"], got["episodes"]) == (want["digest"], want["episodes"]), workers

    def kill_workers(run: subprocess.Popen[str]) -> None:
        for _ in range(2):  # a third time in the same step would be too often
            time.sleep(random.uniform(0.1, 0.4))
            for pid in children(run.pid):
                with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
                    os.kill(pid, signal.SIGKILL)

    def kill_engine(run: subprocess.Popen[str]) -> None:
        time.sleep(random.uniform(0.2, 0.8))
        run.kill()

    out = tmp_path / "killed.parley"
    for kill in (kill_workers, kill_engine, kill_workers, kill_engine, None):
        got = play(program, file, out, 2, kill=kill)
    assert got["digest"] == want["digest"] and got["episodes"] == want["episodes"]


SHOP = """
import parley
FLAT = {"name": "price", "description": "The price of an item.", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}

class Shop(parley.World):
    flat: bool = False
    def seats(self): return ["buyer"]
    async def play(self, t):
        tools = [FLAT if self.flat else {"type": "function", "function": FLAT}]
        talk = t.talk("buyer")
        reply = await talk.say("What is a lamp?", tools=tools)
        for call in reply.tool_calls:
            talk.add({"role": "tool", "tool_call_id": call.id, "content": str(await t.do(len, call.values["item"], label="look"))})
        return parley.Outcome(data=(await talk.say(tools=tools)).text)

    @classmethod
    def stand_in(cls, model, request, seed):
        assert request["tools"] == [FLAT]
        last = request["messages"][-1]
        return "It costs " + last["content"] if last["role"] == "tool" else [{"name": "price", "arguments": {"item": "lamp"}}]
"""


@pytest.mark.parametrize("flat", ["true", "false"])
def test_tools(program: str, tmp_path: Path, flat: str) -> None:
    """Tools in both forms reach the model. A stand-in calls them, and an act belongs to no seat."""
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "shop.yaml").write_text(f"kind: shop.py:Shop\nagents: {{s: {{model: sim/small}}}}\nepisodes: 1\nparams: {{flat: {flat}}}\n")
    subprocess.run([program, "run", "shop.yaml", "--trust", "code=shop.py", "--quiet"], cwd=tmp_path, env=environment(), check=True)
    run = parley.open(tmp_path / "shop.parley")
    assert [e["data"] for e in run.episodes()] == ['"It costs 4"']
    assert [(c["kind"], c["seat"], c["agent"], c["label"]) for c in run.calls()] == [("ask", "buyer", "s", ""), ("act", "", "", "look"), ("ask", "buyer", "s", "")]
    shown = subprocess.run([program, "show", "shop.parley", "--episode", "0"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert "  the world, look  [1:0]\n" in shown


LEAK = """
import os, parley
PROCESS, KEPT = os.getpid(), []
class Leak(parley.World):
    def seats(self): return ["a"]
    async def play(self, t):
        await t.one("a", "x")
        KEPT.append(b"x" * 30_000_000)
        return parley.Outcome(data=PROCESS)
"""


def test_a_world_that_leaks(program: str, tmp_path: Path) -> None:
    """A worker that uses more memory than it may is replaced, and no episode fails."""
    (tmp_path / "leak.py").write_text(LEAK)
    (tmp_path / "leak.yaml").write_text("kind: leak.py:Leak\nagents: {s: {model: sim/small}}\nlineup: {a: s}\nepisodes: 15\nlimits: {concurrency: 1}\n")
    subprocess.run([program, "run", "leak.yaml", "--trust", "code=leak.py", "--quiet"], cwd=tmp_path, env={**environment(), "PARLEY_WORKER_MEMORY": "128"}, check=True)
    episodes = list(parley.open(tmp_path / "leak.parley").episodes())
    assert {e["state"] for e in episodes} == {"ended"} and len({e["data"] for e in episodes}) > 1


MANNERS = '''
import parley

class Manners(parley.World):
    """One question, to be answered politely."""
    version = 1
    form: str = "Ask plainly."

    def seats(self):
        return ["a"]

    def measures(self):
        return [parley.Measure("polite", ["a"], low=0, high=1)]

    async def play(self, t):
        reply = await t.one("a", self.form)
        return parley.Outcome({"polite": {"a": float("please" in reply.text)}})

    @classmethod
    def stand_in(cls, model, request, seed):
        said = str(request["messages"])
        return None if "Ask plainly." not in said else "Yes, please." if "Be polite." in said and "Take your time." in said else "No."
'''


def test_a_world_evolves(program: str, tmp_path: Path) -> None:
    """Texts of a plan whose kind is a class evolve, and the winning plan can be played."""
    (tmp_path / "manners.py").write_text(MANNERS)
    (tmp_path / "manners.yaml").write_text(json.dumps({"kind": "manners.py:Manners", "agents": {"me": {"model": "sim/small", "system": "Be brief."}}, "lineup": {"a": "me"}}))
    params = {
        "preset": "quick", "play": "manners.yaml", "change": ["agents.me.system", "params.form"], "maximize": "polite", "seat": "a",
        "split": {"train": 4, "validation": 2, "test": 4}, "phrases": ["Be polite.", "Take your time."], "max_generations": 8, "mutation_rate": 1,
    }
    (tmp_path / "evolve.yaml").write_text(json.dumps({"kind": "evolve", "params": params}))

    def parley(*args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run([program, *args], cwd=tmp_path, env=environment(2), capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done

    assert "would run the code of" in parley("run", "evolve.yaml", code=2).stderr
    parley("run", "evolve.yaml", "--trust", "code=manners.py")
    parley("export", "evolve.parley", "--format", "folder", "--out", "best")
    (best,) = (tmp_path / "best").glob("*/best.yaml")
    texts = json.loads(best.with_name("best.json").read_text())["texts"]
    assert "Be polite." in "".join(texts.values()) and not best.with_name("best.txt").exists()
    shutil.copy(best, tmp_path)  # beside the class that it names
    parley("check", "best.yaml", "--trust", "code=manners.py")
    played = json.loads(parley("run", "best.yaml", "--json", "--trust", "code=manners.py", "--set", "episodes=3").stdout)
    assert [s["mean"] for s in played["scores"]] == [1], played["scores"]
