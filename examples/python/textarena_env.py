"""The games of TextArena as rollouts with several agents: pip install textarena. A plan sets the seats player0, player1 and so on."""

import random

import textarena

import parley


class Game(parley.Env):
    """A game of TextArena."""

    game: str = "TicTacToe-v0"
    players: int = 2

    def agents(self):
        return [f"player{i}" for i in range(self.players)]

    def ask(self):
        self.player, observation = self.env.get_observation()
        return {f"player{self.player}": [{"role": "user", "content": str(observation)}]}

    def reset(self, seed):
        random.seed(seed)  # its games draw from Python's global random when they begin
        self.env = textarena.make(env_id=self.game)
        self.env.reset(num_players=self.players, seed=seed)
        return self.ask()

    def step(self, action):
        done, _ = self.env.step(action=action[f"player{self.player}"])
        if not done:
            return parley.Step(self.ask(), reward={})
        rewards, info = self.env.close()
        return parley.Step(reward={f"player{p}": r for p, r in rewards.items()}, done=True, info={"end": str(info)})
