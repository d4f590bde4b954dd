"""Improves a model by GRPO over `parley trainer`, in plain PyTorch.

    python examples/grpo/serve.py base.pt --port 8300
    parley trainer examples/grpo/train.yaml --max-ahead 16 --out train.parley
    python examples/grpo/train.py base.pt --updates 40 --log grpo.jsonl

Each update takes groups of episodes with the same maze. An episode is better than its group or worse, and every token that
the model wrote in it becomes more likely or less. --rows last trains only the last answer of each episode,
--shuffle gives the rewards to other episodes, and --frozen changes nothing: three ways not to learn, to compare with.

After each update it writes LOG.pt: the weights, the optimizer, the log and the cursor of the groups that it has trained on. If it is
stopped or killed, run the same command again: it goes on from there, and no group is trained on twice or left out. Every fifth version
stays in a file of its own: agents with a model such as vllm/tiny@past play the last four of them.
"""

import argparse
import json
import math
import os
import random
import shutil
import time
import urllib.error
import urllib.parse
import urllib.request

import torch

import model as lm


KEEP = 5  # every how many updates a version is kept


def ask(url, body=None, patience=120):
    """Sends a request. A server that is away for a while is waited for."""
    until = time.monotonic() + patience
    while True:
        try:
            data = None if body is None else json.dumps(body).encode()
            with urllib.request.urlopen(urllib.request.Request(url, data, {"Content-Type": "application/json"}), timeout=300) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            if e.code != 503 or time.monotonic() > until:
                raise SystemExit(f"{url}: {e.code}: {e.read().decode()}") from e
        except (OSError, ValueError) as e:
            if time.monotonic() > until:
                raise SystemExit(f"{url}: {e}") from e
        time.sleep(0.2)


class Groups:
    """The groups of a run, as they become complete."""

    def __init__(self, url, cursor):
        self.url, self.cursor = url, cursor
        ask(url + "/v1/start", {})

    def take(self, count):
        groups = []
        while len(groups) < count:
            query = urllib.parse.urlencode({"cursor": self.cursor, "wait": 30, "limit": count - len(groups), "trainable": "true"})
            page = ask(f"{self.url}/v1/groups?{query}")
            self.cursor = page["cursor"]
            groups += [g["rows"] for g in page["groups"]]
            if page["done"]:
                raise SystemExit("the run is over: " + page["state"] + " " + page.get("reason", ""))
        return groups


def seat(row):
    return row["episode"], row["agent_id"]


def samples(groups, args):
    """Every part of every seat of an episode that was better or worse than in its group, with its advantage."""
    out, rewards = [], [list({seat(row): row["return"] for row in rows}.values()) for rows in groups]
    given = {seat(row): row["advantage"] for rows in groups for row in rows}
    if args.shuffle:
        dealt = list(given.values())
        random.shuffle(dealt)
        given = dict(zip(given, dealt))
    for row in (row for rows in groups for row in rows):
        if given[seat(row)] == 0 or "tokens" not in row:
            continue
        mask = list(row["loss_mask"])
        if args.rows == "last":
            mask = [0] * row["answer_starts"][-1] + mask[row["answer_starts"][-1]:]
        out.append((row["tokens"], mask, row["logprobs"], given[seat(row)]))
    return out, rewards


def update(model, best, batch, args, device):
    """One pass over the samples, with the clipped objective of PPO."""
    random.shuffle(batch)
    for at in range(0, len(batch), args.batch):
        some = batch[at:at + args.batch]
        ids, there = lm.padded([s[0] for s in some], 0, device, left=False)
        mask, _ = lm.padded([s[1] for s in some], 0, device, left=False)
        before, _ = lm.padded([s[2] for s in some], 0.0, device, left=False)
        gain = torch.tensor([[s[3]] for s in some], device=device)
        logits, _ = model(ids[:, :-1], there[:, :-1])
        odds = torch.log_softmax(logits.float(), -1).gather(2, ids[:, 1:, None])[:, :, 0]
        ratio = (odds - before[:, 1:]).exp()
        wanted = mask[:, 1:].float()
        loss = -torch.min(ratio * gain, ratio.clamp(1 - args.clip, 1 + args.clip) * gain)
        loss = (loss * wanted).sum() / wanted.sum().clamp(min=1)
        best.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        best.step()


def interval(rewards):
    """The mean reward and its 95% interval. Episodes of a group share a maze, so a group counts once."""
    means = [sum(one) / len(one) for one in rewards]
    mean = sum(means) / len(means)
    spread = math.sqrt(sum((m - mean) ** 2 for m in means) / max(1, len(means) - 1))
    return mean, mean - 1.96 * spread / math.sqrt(len(means)), mean + 1.96 * spread / math.sqrt(len(means))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("weights")
    p.add_argument("--trainer", default="http://127.0.0.1:18889")
    p.add_argument("--server", default="http://127.0.0.1:8300")
    p.add_argument("--updates", type=int, default=40)
    p.add_argument("--groups", type=int, default=16, help="groups of an update")
    p.add_argument("--passes", type=int, default=2, help="passes over the samples of an update")
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--rate", type=float, default=5e-4)
    p.add_argument("--clip", type=float, default=0.2)
    p.add_argument("--rows", choices=["all", "last"], default="all")
    p.add_argument("--shuffle", action="store_true")
    p.add_argument("--frozen", action="store_true", help="take groups, and change no weights")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--log", default="grpo.jsonl")
    p.add_argument("--device")
    args = p.parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    device = lm.device(args.device)
    saved = os.path.abspath(args.log) + ".pt"
    model, words = lm.load(args.weights, device)
    best = torch.optim.AdamW(model.parameters(), args.rate, weight_decay=0.0)
    log, cursor = resume(saved, model, best, device) if os.path.exists(saved) else ([], "")
    if log:
        announce(args, saved, len(log))  # the server may have begun again with the first weights
        print(f"continues after update {len(log)}", flush=True)
    groups, began = Groups(args.trainer, cursor), time.monotonic()
    before = log[-1]["seconds"] if log else 0.0
    for n in range(len(log), args.updates):
        taken = groups.take(args.groups)
        batch, rewards = samples(taken, args)
        oldest = min(int(v) for rows in taken for row in rows for v in row.get("weight_versions", [str(n)]))
        for _ in range(0 if args.frozen else args.passes):
            update(model, best, batch, args, device)
        mean, low, high = interval(rewards)
        log.append({
            "update": n, "reward": mean, "low": low, "high": high, "samples": len(batch), "lag": n - oldest,
            "trained_tokens": 0 if args.frozen else sum(sum(s[1]) for s in batch), "seconds": before + time.monotonic() - began,
        })
        lm.save(saved, model, words, optimizer=best.state_dict(), cursor=groups.cursor, log=json.dumps(log), dice=[json.dumps(random.getstate()), torch.get_rng_state()])
        write(args.log, log)
        announce(args, saved, n + 1)
        print(f"update {n + 1}: reward {mean:.3f} [{low:.3f}, {high:.3f}]", flush=True)
    write(args.log, log)
    ask(args.trainer + "/v1/stop", {})


def announce(args, saved, version):
    """Tells the server which weights to use, and the trainer that it does."""
    if not args.frozen:
        files = {v: f"{saved}.v{v}" for v in range(0, version, KEEP) if v}
        if version % KEEP == 0:
            shutil.copyfile(saved, f"{saved}.v{version}")
        past = dict(sorted(files.items())[-4:])
        ask(args.server + "/update_weights", {"path": saved, "version": version, "past": past})
        ask(args.trainer + "/v1/weights", {"version": version, "past": [0, *past]})


def resume(saved, model, best, device):
    """Sets everything as it was after the last update. Returns the log and the cursor."""
    kept = torch.load(saved, map_location=device, weights_only=True)
    model.load_state_dict(kept["weights"])
    best.load_state_dict(kept["optimizer"])
    python, torch_dice = kept["dice"]
    version, numbers, rest = json.loads(python)
    random.setstate((version, tuple(numbers), rest))
    torch.set_rng_state(torch_dice.cpu())
    return json.loads(kept["log"]), kept["cursor"]


def write(path, log):
    with open(path, "w") as f:
        f.writelines(json.dumps(point) + "\n" for point in log)


if __name__ == "__main__":
    main()
