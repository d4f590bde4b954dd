"""Environments in Python: the operations of a worker, faults, the examples, and one digest whenever workers are killed."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import Start
from test_program import EXAMPLES, environment, program  # noqa: F401

import parley
from parley.testing import exercise

TASKSET = """
import verifiers.v1 as vf

class Sum(vf.TaskData):
    answer: str

class SumTask(vf.Task[Sum]):
    @vf.reward
    async def right(self, task: Sum, trace) -> float:
        return float(task.answer in trace.last_reply)

class Sums(vf.Taskset[SumTask, vf.TasksetConfig]):
    def load(self):
        for n in range(5):
            yield SumTask(Sum(prompt=f"What is {n} + 1?", answer=str(n + 1), system_prompt="Answer with a number."), self.config.task)

__all__ = ["Sums"]
"""


def env(start: Start, body: str, **more: Any) -> Any:
    whole = "import parley, time\nclass E(parley.Env):\n    n: int = 3\n" + textwrap.indent(textwrap.dedent(body), "    ")
    return start(whole=whole, cls="E", role="environment", **more)


def test_trace_of_misuse(start: Start) -> None:
    """An error that a call of the author raised has its line and its traceback, also if this package raised it."""
    e = env(start, "def reset(self, seed): return 'go'\ndef step(self, action): return self.deep()\ndef deep(self):\n    return parley.act_key()\n")
    assert "result" in reset(e)
    error = e.ask("step", episode="s", args={"action": "a"})["error"]
    assert error["text"].startswith("w.py:7: Misuse: ") and "line 5, in step" in error["trace"] and "acts.py" not in error["trace"]


def reset(e: Any, params: Any = None) -> Any:
    return e.ask("reset", episode="s", args={"params": params or {}, "seed": 7})


def test_conversation(start: Start) -> None:
    e = env(
        start,
        """
        system = "Count."
        def check(self):
            if self.n > 9: raise parley.Invalid("n", "want 0 to 9")
        def reset(self, seed): return str(seed), {"begun": True}
        def step(self, action):
            print("printed")
            return parley.Step("next", 0.5, info={"said": action}) if action != "stop" else parley.Step(reward=1, done=True)
        def close(self): print("closed")
        """,
    )
    assert e.hello["params"] == [{"name": "n", "type": "int", "default": 3}] and e.hello["durable"] == "turn"
    assert e.ask("check", args={"params": {"n": 2}}) == {"result": {"agents": []}}
    assert e.ask("check", args={"params": {"n": 12}}) == {"error": {"text": "want 0 to 9", "param": "n"}}
    assert e.ask("check", args={"params": {"m": 1}})["error"]["param"] == "m"
    assert e.ask("reset", episode="wrong", args={"params": {"n": 12}, "seed": 1})["error"]["text"].endswith("Invalid: n: want 0 to 9")
    first = [{"role": "system", "content": "Count."}, {"role": "user", "content": "7"}]
    assert reset(e) == {"result": {"prompt": {"default": {"keep": 0, "add": first}}, "info": {"begun": True}}}
    later = [{"role": "assistant", "content": "8"}, {"role": "user", "content": "next"}]
    got = e.ask("step", episode="s", args={"action": "8"})["result"]
    assert got == {"reward": 0.5, "terminated": False, "truncated": False, "info": {"said": "8"}, "prompt": {"default": {"keep": 2, "add": later}}}
    assert e.ask("step", episode="s", args={"action": "stop"})["result"] == {"reward": 1.0, "terminated": True, "truncated": False}
    e.write({"op": "leave", "episode": "s"})
    assert "the worker has no session 's'" in e.ask("step", episode="s", args={"action": "8"})["error"]["text"]
    assert e.end().split() == ["printed", "printed", "closed"]


def test_plain_steps(start: Start) -> None:
    """A step may be a dict or a tuple, as those of gymnasium."""
    e = env(
        start,
        """
        def reset(self, seed): return "go", {}
        def step(self, action):
            if action == "tuple": return "next", 0.5, False, False, {"said": action}
            if action == "dict": return {"observation": "next", "reward": 0.5, "info": {"said": action}}
            return {"reward": 1, "terminated": True}
        """,
    )
    reset(e)
    for action in "tuple", "dict":
        got = e.ask("step", episode="s", args={"action": action})["result"]
        assert got.pop("prompt")["default"]["add"][-1]["content"] == "next"
        assert got == {"reward": 0.5, "terminated": False, "truncated": False, "info": {"said": action}}
    assert e.ask("step", episode="s", args={"action": "end"})["result"] == {"reward": 1.0, "terminated": True, "truncated": False}


SHOP = """
    def reset(self, seed): return "What does it cost?"
    def tools(self): return [self.price, self.pay]
    def price(self, item: str, count: int = 1):
        "Return a price."
        return {"item": item, "price": 3 * count}
    def pay(self, sum: float):
        return parley.Step("thanks", reward=sum, done=sum > 2)
    def step(self, action): return parley.Step("and now?", info={"said": action})
"""


def calls(*named: tuple[str, str]) -> dict[str, Any]:
    made = [{"id": str(i), "type": "function", "function": {"name": name, "arguments": given}} for i, (name, given) in enumerate(named)]
    return {"role": "assistant", "tool_calls": made}


def test_tools(start: Start) -> None:
    e = env(start, SHOP)
    first = reset(e)["result"]["prompt"]["default"]
    assert first["tools"][0] == {
        "type": "function",
        "function": {
            "name": "price",
            "description": "Return a price.",
            "parameters": {
                "type": "object",
                "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
                "required": ["item"],
                "additionalProperties": False,
            },
        },
    }
    asked = calls(("price", '{"item": "lamp", "count": 2}'), ("price", "{}"), ("price", '{"item": 3}'), ("price", "[]"), ("rm", "{}"), ("pay", '{"sum": 1}'))
    got = e.ask("step", episode="s", args={"action": asked})["result"]
    assert got["reward"] == 1 and not got["terminated"]
    change = got["prompt"]["default"]
    assert change["keep"] == 1 and change["add"][0] == asked and "tools" not in change
    assert [(m["tool_call_id"], m["content"], m.get("tool_failed", False)) for m in change["add"][1:]] == [
        ("0", '{"item":"lamp","price":6}', False),
        ("1", "item: is missing", True),
        ("2", "item: 3: want a text", True),
        ("3", "arguments: want a JSON object", True),
        ("4", "rm: there is no such tool: want one of price, pay", True),
        ("5", "thanks", False),
    ]
    later = e.ask("step", episode="s", args={"action": "six"})["result"]
    assert later["info"] == {"said": "six"} and later["prompt"]["default"]["keep"] == 8
    assert e.ask("step", episode="s", args={"action": calls(("pay", '{"sum": 3}'))})["result"] == {"reward": 3.0, "terminated": True, "truncated": False}


def test_tools_that_cannot_be(start: Start) -> None:
    e = env(start, SHOP + "\n    def agents(self): return ['a', 'b']\n")
    assert "only an environment with one agent can have tools" in e.ask("check", args={"params": {}})["error"]["text"]
    e = env(start, SHOP.replace("sum: float", "sum"))
    assert "the tool pay: the parameter sum needs a name and a type hint" in e.ask("check", args={"params": {}})["error"]["text"]


@pytest.mark.parametrize(
    ("step", "want"),
    [
        ("return 1 / 0", "w.py:7: ZeroDivisionError: division by zero"),
        ("return 'done'", "w.py:5: step() returned 'done': want a parley.Step, a dict of its fields, or a tuple as gymnasium's"),
        ("return 'x', 1, False, {}", "w.py:5: step() returned a tuple of 4: want observation, reward, terminated, truncated, info"),
        ("return {'observation': 'x', 'score': 1}", "w.py:5: step() returned a dict with 'score': want some of observation, reward, done, truncated, info"),
        ("return {'reward': 'much'}", "w.py:5: the reward is 'much': want a number"),
        ("return parley.Step('x', reward='much')", "w.py:5: the reward is 'much': want a number"),
        ("return parley.Step('x', reward=float('nan'))", "w.py:5: the reward is nan"),
        ("return parley.Step('x', info={'a': {1, 2}})", "w.py:5: the info: a set is not JSON"),
        ("return parley.Step([1])", "w.py:5: the observation is a list: want messages"),
        ("return parley.Step(parley.act_key())", "w.py:7: Misuse: parley.act_key() is for a function that t.do runs"),
        ("while True: pass", "w.py:7: Stuck: the step takes longer than 0.5 seconds"),
    ],
)
def test_faults(start: Start, step: str, want: str) -> None:
    e = env(start, f"def reset(self, seed): return 'go'\ndef step(self, action):\n    {'x = 1'}\n    {step}\n", limit=0.5)
    assert "result" in reset(e)
    assert want in e.ask("step", episode="s", args={"action": "a"})["error"]["text"]
    assert "result" in reset(e)  # the worker goes on


@pytest.mark.parametrize(
    ("whole", "want"),
    [
        ("import parley\nclass E(parley.World): pass", "w.py: E is not an environment: write class E(parley.Env)"),
        ("import parley\nclass E(parley.Env): pass", "E has no method reset"),
        ("import parley\nclass Ee(parley.Env): pass", "no class E; did you mean Ee?"),
    ],
)
def test_wrong_classes(start: Start, whole: str, want: str) -> None:
    assert want in start(whole=whole, cls="E", role="environment").hello["error"]["text"]


class Drawn(parley.Env):
    count = 0

    def reset(self, seed: int) -> str:
        return str(seed)

    def step(self, action: str) -> parley.Step:
        Drawn.count += 1
        return parley.Step(str(Drawn.count))


def test_exercise() -> None:
    with pytest.raises(AssertionError, match="with the same seed and actions"):
        exercise(Drawn)


@pytest.mark.parametrize(
    ("library", "module", "name", "params"),
    [
        ("parley", "wordle", "Wordle", {"guesses": 3}),
        ("gymnasium", "gymnasium_env", "Gym", {}),
        ("textarena", "textarena_env", "Game", {}),
        ("verifiers", "verifiers_env", "Verifiers", {"taskset": "sums"}),
    ],
)
def test_examples(library: str, module: str, name: str, params: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "sums.py").write_text(TASKSET)
    exercise(getattr(importlib.import_module(module), name), **params)


@pytest.mark.parametrize("library", ["parley", "gymnasium", "textarena", "concordia"])
def test_plans_of_examples(program: str, library: str, tmp_path: Path) -> None:  # noqa: F811
    """Every plan runs from a copy of the folder alone."""
    pytest.importorskip(library)
    folder = tmp_path / "copy"
    shutil.copytree(EXAMPLES, folder)
    libraries = ("gymnasium", "textarena", "concordia")
    plans = [p.stem for p in folder.glob("*.yaml") if (p.name.startswith(library) if library != "parley" else not p.name.startswith(libraries))]
    assert plans
    for name in plans:
        args = [program, "run", f"{name}.yaml", "--json", "--trust", f"code={name}.py"]
        done = subprocess.run(args, cwd=folder, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["state"] == "complete"


def test_textarena_rewards(program: str, tmp_path: Path) -> None:  # noqa: F811
    """A game pays at its end: the reward and the flags of the end are on the last answer of each player."""
    pytest.importorskip("textarena")
    folder, file = tmp_path / "copy", tmp_path / "game.parley"
    shutil.copytree(EXAMPLES, folder)
    args = [program, "run", "textarena_env.yaml", "--out", str(file), "--quiet", "--trust", "code=textarena_env.py"]
    subprocess.run(args, cwd=folder, env=environment(), capture_output=True, check=True)
    text = subprocess.run([program, "trajectories", str(file)], env=environment(), capture_output=True, text=True, check=True).stdout
    players: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in map(json.loads, text.splitlines()):
        if row["status"] == "completed":
            players.setdefault((row["episode"], row["agent_id"]), []).append(row)
    assert players
    for rows in players.values():
        for row in rows:
            last = row is rows[-1]
            assert [row["is_terminal"], row["is_session_completed"], not row["no_reward"]] == [last] * 3, row
            assert row["step_reward"] == row["reward"] == (row["return"] if last else 0), row


MORTAL = """
import os
import wordle

class Mortal(wordle.Wordle):
    def step(self, action):
        Mortal.steps = getattr(Mortal, "steps", 0) + 1
        if Mortal.steps == 30:  # in each of the first four processes
            for n in range(4):
                try:
                    os.close(os.open(f"{os.path.dirname(__file__)}/dead{n}", os.O_CREAT | os.O_EXCL))
                except FileExistsError:
                    continue
                os._exit(9)
        return super().step(action)

class Lossy(Mortal):
    durable = "episode"

class Broken(wordle.Wordle):
    def step(self, action):
        raise ValueError("no " + str(self.left))
"""


def play(program: str, folder: Path, name: str, out: str = "run") -> tuple[Any, str]:  # noqa: F811
    args = [program, "run", "wordle.yaml", "--out", f"{out}.parley", "--json", "--set", f"params.env={name}", "--trust", "code=wordle.py", "--trust", "code=mortal.py"]
    done = subprocess.run(args, cwd=folder, env=environment(2), capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs a built program")
def test_killed_workers(program: str, tmp_path: Path) -> None:  # noqa: F811
    """If the environment does the same again, nobody notices that its worker was killed. Otherwise the episode begins again."""
    for file in ("wordle.py", "wordle.yaml"):
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "mortal.py").write_text(MORTAL)
    refused = subprocess.run([program, "run", "wordle.yaml"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert refused.returncode == 2 and "wordle.yaml:10:8: params.env: would run the code of" in refused.stderr
    got: dict[str, tuple[str, list[Any]]] = {}
    for case, name, deaths in (("whole", "Mortal", 0), ("killed", "Mortal", 4), ("begun again", "Lossy", 4)):
        for n in range(4):
            (tmp_path / f"dead{n}").unlink(missing_ok=True) if deaths else (tmp_path / f"dead{n}").touch()
        summary, said = play(program, tmp_path, f"mortal.py:{name}", case)
        assert summary["episodes"]["failed"] == 0, said
        assert len(list(tmp_path.glob("dead*"))) == 4
        rows = subprocess.run([program, "export", f"{case}.parley", "--table", "episodes"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        data = [json.loads(json.loads(line)["data"]) for line in rows.splitlines()]
        got[case] = summary["digest"], [([(r["step"], r["reward"]) for r in d["rows"]], d["tries"]) for d in data]
    assert got["killed"] == got["whole"]
    assert any(tries > 1 for _, tries in got["begun again"][1])


@pytest.mark.skipif(sys.platform == "win32", reason="needs a built program")
def test_step_that_raises(program: str, tmp_path: Path) -> None:  # noqa: F811
    for file in ("wordle.py", "wordle.yaml"):
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "mortal.py").write_text(MORTAL)
    got, _ = play(program, tmp_path, "mortal.py:Broken")
    assert got["episodes"]["failed"] == got["episodes"]["total"]
    shown = subprocess.run([program, "show", "run.parley", "--episode", "0"], cwd=tmp_path, capture_output=True, text=True).stdout
    assert "environment: step 1: mortal.py:22: ValueError: no 6" in shown and "Traceback" in shown
