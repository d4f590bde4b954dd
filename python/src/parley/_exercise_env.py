"""parley.testing.exercise for environments."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

from ._json import record
from ._made_up import ODD
from .env import DEFAULT, Env, Sessions

_SEEDS, _STEPS = 6, 30  # of the made-up plays


def exercise_env(cls: type[Env], params: Mapping[str, Any]) -> None:
    """Play an environment with made-up actions, twice with each seed, and compare."""
    _result(Sessions(cls).answer("check", {"args": {"params": params}}), "check()")
    for seed in range(_SEEDS):
        first = _play(cls, params, seed)
        if cls.durable == "turn":
            for n, (was, now) in enumerate(zip(first, _play(cls, params, seed))):
                if was != now:
                    what = f"step {n}" if n else "reset"
                    raise AssertionError(
                        f"{what} did something else with the same seed and actions: {was[:200]!r}, then {now[:200]!r}. Draw only from random.Random(seed), "
                        'or set durable = "episode"'
                    )


def _play(cls: type[Env], params: Mapping[str, Any], seed: int) -> list[str]:
    """Play an episode and return its answers."""
    sessions, rand = Sessions(cls), random.Random(seed)
    answer = _result(sessions.answer("reset", {"episode": "e", "args": {"params": params, "seed": seed}}), "reset()")
    answers, tools = [answer], list[Any]()
    for _ in range(_STEPS):
        asked: Mapping[str, Any] = answer.get("prompt") or {}
        if not asked or answer.get("terminated") or answer.get("truncated"):
            break
        for change in asked.values():
            tools = change.get("tools") or tools
        said = {agent: _call(rand, tools, change) if tools and rand.random() < 0.5 else _action(rand, change) for agent, change in asked.items()}
        action: Any = said[DEFAULT] if set(said) == {DEFAULT} else said
        answer = _result(sessions.answer("step", {"episode": "e", "args": {"action": action}}), f"step({action!r:.60})")
        answers.append(answer)
    sessions.leave("e")
    return [record(a, "an answer").decode() for a in answers]


def _action(rand: random.Random, change: Mapping[str, Any]) -> str:
    """Return a word of the prompt, or something odd."""
    words = re.findall(r"\[?\w+\]?", str(change["add"])[-3000:])
    return rand.choice(words) if words and rand.random() < 0.8 else rand.choice(ODD)


def _call(rand: random.Random, tools: list[Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message that calls a tool, with words of the prompt."""
    tool = rand.choice(tools)["function"]
    given = record({name: _action(rand, change) for name in tool["parameters"]["properties"]}, "arguments").decode()
    return {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": tool["name"], "arguments": given}}]}


def _result(answer: Mapping[str, Any], what: str) -> Any:
    error = answer.get("error")
    if error is not None:
        param = f"{error['param']}: " if "param" in error else ""
        raise AssertionError(f"{what}: {param}{error['text']}")
    return answer["result"]
