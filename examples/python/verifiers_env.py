"""Plays the tasks of a verifiers taskset as rollouts: pip install verifiers. A plan names the taskset:

    params: {env: verifiers_env.py:Verifiers, env_params: {taskset: gsm8k}}

One question and one answer, scored by the task's own rewards. Tasks that need tools, a runtime or a user run in verifiers itself:
give its client the address of `parley gateway`.
"""

import asyncio
import functools

import verifiers.v1 as vf
from verifiers.v1.graph import prepare_turn
from verifiers.v1.types import AssistantMessage, Response, SystemMessage, UserMessage
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

import parley


@functools.cache
def load(name, limit):
    """Load the tasks of a taskset once."""
    return list(load_taskset(taskset_config_type(name)(id=name)).take(limit))


class Verifiers(parley.Env):
    """A taskset of verifiers: the seed draws the task."""

    taskset: str
    tasks: int = 1000

    def reset(self, seed):
        tasks = load(self.taskset, self.tasks)
        self.task = tasks[seed % len(tasks)]
        data = self.task.data
        prompt = [UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else list(data.prompt or [])
        self.prompt = [SystemMessage(content=data.system_prompt), *prompt] if data.system_prompt else prompt
        return [m.model_dump(mode="json", exclude_none=True) for m in self.prompt], {"task": self.task.key}

    def step(self, action):
        data = self.task.data
        trace = vf.Trace(task=vf.TraceTask(type=type(self.task).__name__, data=data), agent=vf.AgentInfo(config=vf.AgentConfig()))
        answer = Response(id="parley", created=0, model="parley", message=AssistantMessage(content=action), finish_reason="stop")
        prepare_turn(trace, self.prompt).commit(answer)
        asyncio.run(self.task.score(trace))
        scores = {name: r.value for name, r in trace.rewards.items() if r is not None}
        return parley.Step(reward=trace.reward, done=True, info={"rewards": scores, "metrics": trace.metrics})
