"""Plays the games of TextArena: pip install textarena. A plan sets the game and the number of players."""

import textarena

import parley


class Game(parley.World):
    """A game of TextArena."""

    durable = "episode"  # its games draw from Python's global random
    game: str = "TicTacToe-v0"
    players: int = 2

    def seats(self) -> list[str]:
        return [f"player{i}" for i in range(self.players)]

    def measures(self) -> list[parley.Measure]:
        return [parley.Measure("reward", self.seats(), rivals=True)]

    async def play(self, t: parley.Table) -> parley.Outcome:
        env = textarena.make(env_id=self.game)
        env.reset(num_players=self.players, seed=t.rand.int_n(1 << 31))
        done = False
        while not done:
            player, observation = env.get_observation()
            reply = await t.one(f"player{player}", str(observation), label="move")
            done, _ = env.step(action=reply.text)
        rewards, info = env.close()
        return parley.Outcome({"reward": {f"player{p}": r for p, r in rewards.items()}}, data={"end": str(info)})
