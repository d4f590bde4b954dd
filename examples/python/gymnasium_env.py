"""Any environment of gymnasium with texts as observations, as rollouts: pip install "gymnasium[toy-text]"."""

import gymnasium

import parley


class Gym(parley.Env):
    """An environment of gymnasium with a list of named actions."""

    name: str = "FrozenLake-v1"
    actions: list[str] = ["left", "down", "right", "up"]
    options: dict[str, object] = {"is_slippery": False}
    system = "You walk over a frozen lake from S to G. H is a hole. Your place is marked. Answer with left, down, right or up."

    def reset(self, seed):
        self.env = gymnasium.make(self.name, render_mode="ansi", **self.options)
        self.env.reset(seed=seed)
        return str(self.env.render())

    def step(self, action):
        named = [a for a in self.actions if a in action.lower()]
        if not named:
            return parley.Step("Answer with one of " + ", ".join(self.actions))
        _, reward, done, truncated, _ = self.env.step(self.actions.index(named[-1]))
        return parley.Step(str(self.env.render()), float(reward), done, truncated)

    def close(self):
        self.env.close()
