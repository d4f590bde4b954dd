"""Episodes of `parley trainer` in TRL's GRPOTrainer, in the place of its own generation.

    GRPOTrainer(model, rollout_func=Rollouts().take, reward_funcs=reward, train_dataset=prompts, args=GRPOConfig(num_generations=8))

The plan's params are `group: 8`, the same number, and `tokens: true`. TRL asks for whole groups, and takes the next ones that are complete: the dataset
(`--shape trl-grpo`) only says how many. One process trains. It loads new weights into the model server itself: docs/how-to/train.md.
"""

import json
import urllib.parse
import urllib.request


def reward(completions, episode_return, **_):
    return episode_return


class Rollouts:
    def __init__(self, url="http://127.0.0.1:18889", cursor=""):
        self.url, self.cursor = url, cursor
        self.ask("/v1/start", b"{}")

    def ask(self, path, body=None):
        with urllib.request.urlopen(self.url + path, body, timeout=300) as answer:
            return json.load(answer)

    def groups(self, count):
        """The rows of the next groups."""
        while count > 0:
            query = {"cursor": self.cursor, "wait": 30, "limit": count, "trainable": "true", "whole": "true", "status": "completed,truncated"}
            page = self.ask("/v1/groups?" + urllib.parse.urlencode(query))
            self.cursor, count = page["cursor"], count - len(page["groups"])
            yield from (g["rows"] for g in page["groups"])
            if count > 0 and page["done"]:
                raise RuntimeError(f"the run is over ({page['state']}), and {count} groups are missing: plan more episodes")

    def take(self, prompts, trainer):
        """What TRL wants of a rollout_func: one sequence for each of its prompts, which are repeated num_generations times."""
        out = {"prompt_ids": [], "completion_ids": [], "logprobs": [], "env_mask": [], "episode_return": []}
        for rows in self.groups(len(prompts) // trainer.num_generations):
            if len(rows) != trainer.num_generations or any(len(r.get("logprobs", [])) == 0 for r in rows):
                raise ValueError(f"group {rows[0]['group_id']} has {len(rows)} sequences, want {trainer.num_generations} with log probabilities: "
                                 "TRL takes one part of one agent for each episode")
            for r in rows:
                first = r["answer_starts"][0]
                out["prompt_ids"].append(r["tokens"][:first])
                out["completion_ids"].append(r["tokens"][first:])
                out["logprobs"].append(r["logprobs"][first:])
                out["env_mask"].append(r["loss_mask"][first:])
                out["episode_return"].append(r["return"])
        return out
