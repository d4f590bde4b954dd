"""Environments for rollouts: agents act in them, step by step, for rewards."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from . import _tools, params
from ._json import record
from .errors import Invalid, Misuse, describe, has_line, line_of
from .guard import fold
from .values import Message

Prompt = str | Sequence[Message]
"""What one agent is asked: a text, which continues its conversation, or all messages of it."""

Observation = Prompt | Mapping[str, Prompt] | None
"""What is asked next: a prompt, or a prompt for each agent that is asked. None: nobody, which ends the episode."""

DEFAULT = "default"  # the agent of an environment with a single agent


@dataclasses.dataclass(frozen=True)
class Step:
    """What an action did.

    ``reward`` is a number, or a number for each agent. ``done``: the episode has ended; ``truncated``: it was cut off.
    ``info`` is any JSON; the last one is kept with the outcome.
    """

    observation: Observation = None
    reward: float | Mapping[str, float] = 0.0
    done: bool = False
    truncated: bool = False
    info: Mapping[str, Any] | None = None


class Env:
    """An environment of rollouts. Subclass it: typed fields are the ``env_params`` of a plan.

    A plan names it with ``env: wordle.py:Wordle``. If its process ends, another one makes it again with the same seed and
    actions; set ``durable = "episode"`` if its steps must not be repeated. The episode then begins again.
    """

    durable: ClassVar[Literal["turn", "episode"]] = "turn"
    step_limit: ClassVar[float | None] = None
    """How many seconds a step may take. None: a minute."""
    system: str = ""
    """The system message of conversations."""

    def __init__(self, **values: Any) -> None:
        params.make(type(self), values, self, Env)

    def check(self) -> None:
        """Check the params. Raise ``parley.Invalid("guesses", "want 1 to 20")`` for a wrong one."""

    def agents(self) -> Sequence[str]:
        """List the agents: the seats of the plan. Empty: a single agent with any name."""
        return ()

    def reset(self, seed: int) -> Observation | tuple[Observation, Mapping[str, Any]]:
        """Start over. Return what is asked first, and optionally an info. The same seed must give the same."""
        raise NotImplementedError(f"{type(self).__name__} has no method reset: add def reset(self, seed)")

    def step(self, action: Any) -> Step | Mapping[str, Any] | tuple[Any, ...]:
        """Carry out an action: the text of the agent or, for several agents, a dict of their texts.

        Return a Step, a dict of its fields, or a tuple as gymnasium's environments do: observation, reward, terminated, truncated, info.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method step: add def step(self, action)")

    def tools(self) -> Sequence[Callable[..., Any]]:
        """List methods that the agent may call, such as ``[self.price]``.

        A tool has a type hint for each parameter, and its doc string tells the model what it is for. It returns a text or any JSON, which
        the model gets; or a Step, to give a reward or to end the episode. ``step`` gets only the answers without calls.
        """
        return ()

    def close(self) -> None:
        """Free what the environment holds. It is called once, after the last step."""

    @classmethod
    def stand_in(cls, model: str, request: Mapping[str, Any], seed: int) -> str | Sequence[Mapping[str, Any]] | None:
        """Answer a request for the simulated provider, or return None if it is not one of this environment.

        To call tools, return a list such as ``[{"name": "price", "arguments": {"item": "kettle"}}]``.
        """
        return None


def check(cls: type[Env]) -> None:
    """Refuse a class that cannot be played, with a sentence that says what to change."""
    for name in ("reset", "step"):
        if getattr(cls, name) is getattr(Env, name):
            raise Misuse(f"{cls.__name__} has no method {name}")


class Sessions:
    """The environments of a worker, by session."""

    def __init__(self, cls: type[Env]) -> None:
        self._cls = cls
        self._live: dict[str, _Session] = {}

    def answer(self, op: str, m: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation and return the fields of its answer."""
        args = cast("dict[str, Any]", m.get("args") or {})
        fold.serial += 1
        fold.table = self  # the clock looks at the step
        try:
            if op == "check":
                return {"result": {"agents": list(self._made(args["params"]).agents())}}
            if op == "reset":
                if m["episode"] not in self._live:  # a matrix may vary params
                    self._live[m["episode"]] = _Session(self._made(args["params"]))
                return {"result": self._live[m["episode"]].reset(args["seed"])}
            if op == "step":
                if m["episode"] not in self._live:
                    raise LookupError(f"the worker has no session {m['episode']!r}")
                return {"result": self._live[m["episode"]].step(args["action"])}
        except BaseException as e:
            if isinstance(e, Invalid) and op == "check":
                return {"error": {"text": e.text, "param": e.param}}
            if isinstance(e, Misuse) and not has_line(e) and m.get("episode") in self._live:
                return {"error": {"text": line_of(self._live[m["episode"]].running) + str(e)}}
            return {"error": describe(e)}
        finally:
            fold.table = None
        raise ValueError("unknown op")

    def _made(self, values: Mapping[str, Any]) -> Env:
        env = self._cls(**values)
        env.check()
        if _tools.describe(env.tools()) and env.agents():
            raise Misuse(f"{self._cls.__name__} has tools and several agents: only an environment with one agent can have tools")
        return env

    def leave(self, name: str) -> None:
        """Close an environment."""
        session = self._live.pop(name, None)
        if session is not None:
            session.close()


class _Session:
    """An environment, and the conversation of each agent."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._shown: dict[str, int] = {}  # messages of the last prompt, by agent
        self._said: dict[str, list[Message]] = {}  # since the last prompt
        self._tools: dict[str, Callable[..., Any]] = {}
        self.running: Callable[..., Any] = env.reset  # the method of the author that was called last

    def reset(self, seed: int) -> dict[str, Any]:
        self._shown, self._said = {}, {}
        self.running = self._env.reset
        got = self._env.reset(seed)
        self._tools = {t.__name__: t for t in self._env.tools()}
        info: Any = None
        if isinstance(got, tuple):
            if len(cast("tuple[Any, ...]", got)) != 2:
                raise Misuse(f"reset() returned a tuple of {len(cast('tuple[Any, ...]', got))}: want an observation, or an observation and an info")
            got, info = cast("tuple[Observation, Any]", got)
        made: dict[str, Any] = {"prompt": self._prompt(got), "info": info}
        for change in cast("dict[str, Any]", made["prompt"] or {}).values():
            if self._tools:
                change["tools"] = _tools.describe(list(self._tools.values()))
        return self._checked(made)

    def step(self, action: Any) -> dict[str, Any]:
        calls = _tools.calls_of(action)
        if calls:
            return self._call(action, calls)
        if isinstance(action, Mapping) and len(self._tools) > 0:
            ((_, action),) = cast("Mapping[str, Any]", action).items()  # the only agent, by its name
            return self.step(action)
        for agent, text in cast("Mapping[str, str]", action if isinstance(action, Mapping) else {DEFAULT: action}).items():
            self._said.setdefault(agent, []).append({"role": "assistant", "content": text})
        self.running = self._env.step
        got = _step(self._env.step(action))
        return self._made(got, got.observation)

    def _call(self, answer: Message, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Carry out calls of tools."""
        said = self._said.setdefault(DEFAULT, [])
        said.append(answer)
        total = Step()
        for call in calls:
            name, message = call["function"]["name"], {"role": "tool", "tool_call_id": call["id"]}
            try:
                tool = self._tools.get(name)
                if tool is None:
                    raise Invalid(name, f"there is no such tool: want one of {', '.join(self._tools) or 'none'}")
                given = _tools.arguments(tool, call["function"]["arguments"])
            except Invalid as e:
                said.append({**message, "content": f"{e.param}: {e.text}", "tool_failed": True})
                continue
            self.running = tool
            got = tool(**given)
            if isinstance(got, Step):
                reward = cast(float, _reward(got.reward)) + cast(float, total.reward)
                total = Step(None, reward, got.done or total.done, got.truncated or total.truncated, got.info or total.info)
                got = got.observation or ""
            said.append({**message, "content": _tools.text_of(got)})
        return self._made(total, [])

    def _made(self, got: Step, observation: Observation) -> dict[str, Any]:
        made: dict[str, Any] = {"reward": _reward(got.reward), "terminated": bool(got.done), "truncated": bool(got.truncated), "info": got.info}
        if not got.done and not got.truncated:
            made["prompt"] = self._prompt(observation)
        return self._checked(made)

    def _checked(self, made: dict[str, Any]) -> dict[str, Any]:
        record(made.get("info"), "the info")
        record(made.get("prompt"), "the observation")
        return {k: v for k, v in made.items() if v is not None}

    def _prompt(self, observation: Observation) -> dict[str, Any] | None:
        """Return the changes of the prompt of each agent that is asked."""
        if observation is None:
            return None
        if not isinstance(observation, Mapping):
            observation = {DEFAULT: observation}
        return {agent: self._change(agent, prompt) for agent, prompt in cast("Mapping[str, Prompt]", observation).items()}

    def _change(self, agent: str, prompt: Prompt) -> dict[str, Any]:
        keep, add = 0, list(prompt) if not isinstance(prompt, str) else []
        if isinstance(prompt, str) or (not add and self._said.get(agent)):  # no message is added after the results of tools
            keep = self._shown.get(agent, 0)
            add = [*self._said.get(agent, []), *([{"role": "user", "content": prompt}] if isinstance(prompt, str) else [])]
            if keep == 0 and self._env.system:
                add.insert(0, {"role": "system", "content": self._env.system})
        elif not all(isinstance(m, Mapping) and "role" in m for m in cast("list[Any]", add)):
            raise Misuse('the observation is a list: want messages such as {"role": "user", "content": "…"}')
        self._said[agent] = []
        self._shown[agent] = keep + len(add)
        return {"keep": keep, "add": add}

    def close(self) -> None:
        try:
            self._env.close()
        except Exception as e:
            print("parley: closing an environment:", describe(e)["text"])


def _step(got: Any) -> Step:
    """Return what step() returned as a Step."""
    if isinstance(got, Step):
        return got
    if isinstance(got, tuple):
        parts = cast("tuple[Any, ...]", got)
        if len(parts) != 5:
            raise Misuse(f"step() returned a tuple of {len(parts)}: want observation, reward, terminated, truncated, info")
        return Step(*parts)
    if isinstance(got, Mapping):
        fields = dict(cast("Mapping[str, Any]", got))
        if "terminated" in fields and "done" not in fields:  # gymnasium's word
            fields["done"] = fields.pop("terminated")
        known = [f.name for f in dataclasses.fields(Step)]
        unknown = [name for name in fields if name not in known]
        if unknown:
            raise Misuse(f"step() returned a dict with {unknown[0]!r:.40}: want some of {', '.join(known)}")
        return Step(**fields)
    raise Misuse(f"step() returned {got!r:.80}: want a parley.Step, a dict of its fields, or a tuple as gymnasium's")


def _reward(value: Any) -> float | dict[str, float]:
    if isinstance(value, Mapping):
        return {str(agent): cast(float, _reward(v)) for agent, v in cast("Mapping[Any, Any]", value).items()}
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise Misuse(f"the reward is {value!r:.40}: want a number, or a number for each agent") from None
    if not math.isfinite(number):
        raise Misuse(f"the reward is {number}: want a finite number")
    return number
