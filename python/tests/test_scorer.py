"""Scorers and judges: what a worker answers, and scores of a real run, whenever the scoring is killed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Start
from test_program import EXAMPLES, environment, program, server  # noqa: F401

PLAYED = {
    "run": "r", "episode": 4, "kind": "game", "params": {"n": 1}, "deal": 2, "lineup": {"a": "me", "b": "you"}, "models": {"me": "lab/one"},
    "outcome": {"scores": [{"name": "won", "value": 1, "seat": "a"}], "data": {"x": 1}},
    "notes": [{"turn": "0", "kind": "board", "data": 7}],
    "calls": [
        {"turn": "0", "seat": "a", "agent": "me", "label": "move", "messages": [{"role": "user", "content": "?"}], "reply": {"text": "north please"}},
        {"turn": "1", "seat": "b", "agent": "you", "reply": {"failed": "timeout"}},
        {"turn": "2", "seat": "b", "agent": "you", "act": {"name": "look", "body": []}, "reply": {"json": 3}},
    ],
}  # fmt: skip


def scorer(start: Start, body: str, **more: Any) -> Any:
    lines = "".join("    " + line + "\n" for line in body.strip().split("\n"))
    return start(whole="import parley\nclass S(parley.Scorer):\n" + lines, cls="S", role="scorer", **more)


def begin(e: Any, params: Any = None) -> Any:
    return e.ask("begin", episode="e", params=params or {}, lineup={}, seed="1", deal=0, played=PLAYED)


def test_plain(start: Start) -> None:
    e = scorer(
        start,
        """
n: int = 2
def score(self, episode):
    assert episode.data == {"x": 1} and episode.notes[0].data == 7 and episode.calls[2].act["name"] == "look" and not episode.calls[1].reply.ok
    return {"words": {"a": len(episode.said("a")[0].split()) * self.n}, "all": len(episode.said()), "won": episode.scores[0].value}
""",
    )
    assert e.hello["judges"] == {} and e.ask("seats", params={}) == {"seats": []}
    scores = [{"name": "words", "value": 4.0, "seat": "a"}, {"name": "all", "value": 1.0}, {"name": "won", "value": 1.0}]
    got = begin(e)["end"]["scores"]
    assert sorted(map(json.dumps, got)) == sorted(map(json.dumps, scores)) or got == scores


def test_judge(start: Start) -> None:
    e = scorer(
        start,
        """
judges = {"judge": "lab/large"}
def measures(self): return [parley.Measure("good", low=0, high=1)]
async def score(self, episode, t):
    reply = await t.one("judge", episode.said("a")[0], label="judge")
    return {"good": float(reply.text)} if reply.ok else None
""",
    )
    assert e.hello["judges"] == {"judge": "lab/large"}
    assert e.ask("seats", params={}) == {"seats": ["judge"], "measures": [{"name": "good", "low": 0, "high": 1}]}
    assert begin(e)["ask"][0]["messages"] == [{"role": "user", "content": "north please"}]
    assert e.reply("0.5")["end"] == {"scores": [{"name": "good", "value": 0.5}]}
    begin(e)
    assert e.reply({"failed": "timeout"})["end"] == {}


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("x = 1", "S has no method score"),
        ("def score(self, episode, t): return {}", "write def score(self, episode), or async def score(self, episode, t)"),
        ("judges = {'judge': 3}\ndef score(self, episode): return {}", "S.judges: want models by seat"),
    ],
)
def test_wrong_classes(start: Start, body: str, want: str) -> None:
    assert want in scorer(start, body).hello["error"]["text"]


@pytest.mark.parametrize(
    ("body", "want"),
    [
        ("def score(self, episode): return {'good': 'yes'}", "the score good is yes: want a number"),
        ("def measures(self): return [parley.Measure('good')]\ndef score(self, episode): return {'bad': 1}", "score() gave 'bad', which measures() does not list"),
        ("def score(self, episode): return 1 / 0", "w.py:3: ZeroDivisionError"),
        ("def score(self, episode): open('x')", "w.py:3: Impure: open is not allowed"),
    ],
)
def test_faults(start: Start, body: str, want: str) -> None:
    assert want in begin(scorer(start, body))["error"]["text"]


def test_a_scorer_is_no_world(start: Start) -> None:
    e = start(whole="import parley\nclass S(parley.Scorer):\n    def score(self, episode): return {}", cls="S")
    assert "S is a scorer: use parley score RUN --with w.py:S" in e.hello["error"]["text"]


def size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # not yet, or no more
        return 0


def test_killed(program: str, server: str, tmp_path: Path) -> None:  # noqa: F811
    """Killed and resumed, the scores are the same, and nothing that was recorded is asked again."""
    for name in ("auction.py", "auction.yaml", "polite.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    lab = f"providers.lab={{dialect: openai, base_url: {server}/v1}}"
    run = [program, "run", "auction.yaml", "--trust", "code=auction.py", "--quiet"]
    assert subprocess.run(run, cwd=tmp_path, env=environment()).returncode == 0

    def score(name: str, *flags: str, kill: bool = False) -> Any:
        args = [program, "score", "auction.parley", "--with", "polite.py:Politeness", "--name", name, "--judge", "judge=lab/large", "--set", lab, "--json", *flags]
        done = subprocess.Popen(args, cwd=tmp_path, env=environment(2), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if kill:
            file = tmp_path / "auction.scores" / f"{name}.parley-wal"
            while done.poll() is None and size(file) <= 100_000:
                time.sleep(0.005)
            done.kill()
        text, error = done.communicate(timeout=600)
        if kill:
            assert done.returncode == -signal.SIGKILL, "it ended before it was killed"
            return None
        assert done.returncode == 0, error
        return json.loads(text)

    want = score("Whole")
    score("Killed", kill=True)
    score("Killed", "--concurrency", "1", kill=True)
    got = score("Killed")
    assert got["digest"] == want["digest"] and got["episodes"] == want["episodes"]
    rows = subprocess.run([program, "export", "auction.parley", "--table", "scores"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    found: dict[str, list[Any]] = {"Whole.polite": [], "Killed.polite": []}
    for line in rows.splitlines():
        row = json.loads(line)
        if row["name"] in found:
            found[row["name"]].append((row["episode"], row["seat"], row["value"]))
    assert found["Whole.polite"] == found["Killed.polite"] and len(found["Whole.polite"]) == 200
    calls = subprocess.run([program, "export", "auction.scores/Killed.parley"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert len(calls.splitlines()) == 200
