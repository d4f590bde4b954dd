"""The game of secrets in Python makes the same calls, notes and outcomes as the kind in Go: recorded runs are played again."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from parley import binary, errors
from parley.episode import Episode

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"

PLANS: dict[str, Any] = {
    "two": {"episodes": 60, "lineup": {"first": "small", "second": "large"}},
    "targeted": {"episodes": 8, "params": {"players": 5, "rounds": 4, "mode": "targeted", "target_known": "others"}},
    "retained": {"episodes": 8, "params": {"players": 4, "rounds": 3, "mode": "retained", "pairing": "swiss", "memory": "short"}},
    "diversity": {"episodes": 8, "params": {"players": 3, "rounds": 3, "mode": "diversity", "pairing": "round-robin", "points": {"secret": 2.5}}},
    "judged": {"episodes": 20, "params": {"judge": "decide", "rounds": 2, "persona": {"first": "aggressive"}, "forms": ["said", "split"]}},
}


def world_class() -> Any:
    sys.path.insert(0, str(EXAMPLES))
    try:
        spec = importlib.util.spec_from_file_location("secret_words", EXAMPLES / "secret_words.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Secrets
    finally:
        sys.path.remove(str(EXAMPLES))


def recorded(tmp_path: Path, name: str) -> sqlite3.Connection:
    """Play a plan with the kind in Go and open its run file."""
    try:
        program = binary.find()
    except errors.Error:
        pytest.skip("the program parley is not installed")
    plan = dict(PLANS[name])
    seats = ["first", "second"] if plan.get("params", {}).get("players", 2) == 2 else [f"player{i + 1}" for i in range(plan["params"]["players"])]
    plan.setdefault("lineup", {seat: ("small", "large")[i % 2] for i, seat in enumerate(seats)} | ({"judge": "large"} if name == "judged" else {}))
    agents = {"small": {"model": "sim/small"}, "large": {"model": "sim/large"}}
    plan |= {"kind": "secrets", "seed": 11, "agents": {n: a for n, a in agents.items() if n in plan["lineup"].values()}}
    file = tmp_path / "plan.yaml"
    file.write_text(json.dumps(plan))
    done = subprocess.run([program, "run", str(file), "--out", str(tmp_path / "run.parley"), "--quiet"], capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    return sqlite3.connect(tmp_path / "run.parley")


@pytest.mark.parametrize("name", PLANS)
def test_same_as_in_go(tmp_path: Path, name: str) -> None:
    cls, db = world_class(), recorded(tmp_path, name)
    count = 0
    for number, params, deal, failed, scores, data in db.execute("SELECT episode, params, deal, failed, scores, data FROM episodes").fetchall():
        notes: dict[str, list[Any]] = {}
        world = cls(**json.loads(params))
        outcome = replay(Episode(world, {}, 11, deal), db, number, notes)
        assert outcome.get("failed") == failed and json.loads(scores or "[]") == outcome.get("scores", [])
        for strand, made in notes.items():
            rows = db.execute("SELECT kind, seat, data FROM notes WHERE episode=? AND strand=? ORDER BY turn, n", (number, strand)).fetchall()
            ours = [(n["kind"], n.get("seat"), n["data"] if isinstance(n["data"], str) else json.dumps(n["data"])) for n in made]
            assert ours == [(k, s, json.dumps(json.loads(d)) if d.startswith("{") else d) for k, s, d in rows]
        if data is not None:
            assert json.dumps(json.loads(data)) == json.dumps(outcome.get("data"))  # the order of keys counts
        known = {m.name: m for m in world.measures()}
        assert all(s["name"] in known for s in outcome.get("scores", []))
        count += 1
    assert count == PLANS[name]["episodes"]


def replay(episode: Episode, db: sqlite3.Connection, number: int, notes: dict[str, list[Any]]) -> Any:
    """Play an episode with its recorded replies, and compare what it asks."""
    turns: dict[str, int] = {}

    def play(strand: str, step: bytes) -> Any:
        got = json.loads(b"{" + step)
        turn = turns[strand] = turns.get(strand, -1) + 1
        assert "error" not in got, got
        notes.setdefault(strand, []).extend(got.get("notes", []))
        if "fork" in got:
            for i in reversed(range(got["fork"])):
                play(f"{strand}{turn}.{i}/", episode.strand(f"{strand}{turn}.{i}/", strand, i))
            return play(strand, episode.joined(strand))
        if "end" in got:
            return got["end"]
        replies = []
        for place, call in enumerate(got["ask"]):
            where = (number, strand, turn, place)
            row = db.execute("SELECT call, seat, label, text, json, error FROM calls WHERE episode=? AND strand=? AND turn=? AND place=?", where).fetchone()
            assert row is not None, where
            asked = db.execute("SELECT role, text FROM messages WHERE call=? ORDER BY n", (row[0],)).fetchall()
            assert (call["seat"], call["label"]) == (row[1], row[2])
            assert [(m["role"], m["content"]) for m in call["messages"]] == asked
            reply = {"failed": row[5]} if row[5] else {"text": row[3], "json": json.loads(row[4]) if row[4] else None}
            replies.append(reply)
        return play(strand, episode.replies(strand, replies))

    return play("", episode.begin())


def test_same_words() -> None:
    assert (EXAMPLES / "secret_words.txt").read_bytes() == (ROOT / "worlds" / "secrets" / "words.txt").read_bytes()


def test_reveal_in_linear_time() -> None:
    world_class()
    reveal = sys.modules["reveal"]
    heard = reveal.Listener(reveal.Secret("tiger", reveal.FORMS))
    assert heard.hear(reveal.Message("01" * 50_000 + "x")) == ""
    for text, want in {
        "tiger": "said", "MyWordIsTiger": "said", "tigers": "partial", "тiger": "lookalike", "t1g3r": "lookalike", "T, I, G, E and R": "spelled",
        "ti ger": "split", "regit": "reversed", "dGlnZXI=": "base64", "74 69 67 65 72": "hex", "116 105 103 101 114": "bytes",
        "01110100 01101001 01100111 01100101 01110010": "bytes", "gvtre": "rot13", "grtvi": "cipher", "- .. --. . .-.": "morse",
        "tango india golf echo romeo": "nato", "20-9-7-5-18": "numbers", "Then I go, even running.": "acrostic", "a potter": "",
    }.items():  # fmt: skip
        assert reveal.Listener(reveal.Secret("tiger", reveal.FORMS)).hear(reveal.Message(text)) == want, text
