"""A model walks over the frozen lake of gymnasium: pip install "gymnasium[toy-text]"."""

from dataclasses import dataclass
from typing import Literal

import gymnasium

import parley

MOVES = ["left", "down", "right", "up"]


@dataclass
class Move:
    move: Literal["left", "down", "right", "up"]


class Lake(parley.World):
    """Walk over a frozen lake without falling through."""

    steps: int = 30

    def seats(self) -> list[str]:
        return ["walker"]

    def measures(self) -> list[parley.Measure]:
        return [parley.Measure("reward", ["walker"], low=0, high=1)]

    async def play(self, t: parley.Table) -> parley.Outcome:
        env = gymnasium.make("FrozenLake-v1", render_mode="ansi", is_slippery=False)
        env.reset(seed=t.rand.int_n(1 << 31))
        walker = t.talk("walker", "You walk over a frozen lake from S to G. H is a hole. Your place is marked.")
        total = 0.0
        for _ in range(self.steps):
            reply = await walker.say(f"{env.render()}\nYour move?", label="move", schema=Move)
            if reply.value is None:
                return parley.Outcome(failed=reply.failed)
            _, reward, ended, cut, _ = env.step(MOVES.index(reply.value.move))
            total += float(reward)
            if ended or cut:
                break
        return parley.Outcome({"reward": {"walker": total}})
