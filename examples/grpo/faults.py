"""Kills and stalls the model server, and changes its weights, while Parley plays; then checks every row that came out.

    python examples/grpo/faults.py --out grpo-faults

It needs PyTorch and the program parley, and no network. It ends with an error unless every episode is there once and whole,
and every token of every answer has the probability that the weights named beside it give it.
"""

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.parse

import torch

import model as lm
from loop import HERE, check_program, free_port, listening, run
from train import ask


class Server:
    """The model server, which can be killed, stopped for a while, and given other weights."""

    def __init__(self, base, device):
        self.base, self.device, self.port, self.process = base, device, free_port(), None
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, os.path.join(HERE, "serve.py"), self.base, "--port", str(self.port), "--device", self.device]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        listening(self.process, "serve.py")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stall(self, seconds):
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.process.send_signal(signal.SIGCONT)


class Faults(threading.Thread):
    """Makes trouble until the run is over, after each time waiting for some answers."""

    def __init__(self, server, trainer, weights):
        super().__init__(daemon=True)
        self.server, self.trainer, self.weights = server, trainer, weights
        self.counts, self.version, self.over = {"killed": 0, "stalled": 0, "updated": 0, "cut off": 0, "aborted": 0}, 0, threading.Event()

    def answers(self, count):
        """Waits until the server has given so many more answers, or the run is over."""
        before = ask(self.server.url + "/health")["answered"]
        while not self.over.is_set() and ask(self.server.url + "/health")["answered"] < before + count:
            time.sleep(0.05)
        return not self.over.is_set()

    def update(self, calls=None, abort=False):
        """Loads the next weights, as a trainer does: without a pause, or with calls in flight cut off or aborted by the server."""
        self.version = (self.version + 1) % len(self.weights)
        if calls:
            ask(self.trainer + "/v1/pause", {"calls": calls})
        ask(self.server.url + "/update_weights", {"path": self.weights[self.version], "version": self.version, "abort": abort})
        ask(self.trainer + "/v1/weights", {"version": self.version})
        if calls:
            ask(self.trainer + "/v1/resume", {})

    def run(self):
        try:
            for fault in itertools.cycle(["killed", "updated", "stalled", "cut off", "aborted"]):
                if not self.answers(200):
                    return
                if fault == "killed":  # what starts again has the first weights, and says so
                    self.server.kill()
                    time.sleep(1)
                    self.server.start()
                elif fault == "stalled":
                    self.server.stall(3)
                elif fault == "aborted":
                    self.update("hold", abort=True)
                else:
                    self.update("cut" if fault == "cut off" else None)
                self.counts[fault] += 1
        except SystemExit as e:  # of ask: nothing is played any more
            if not self.over.is_set():
                print(e, file=sys.stderr)
                os._exit(1)


def read(trainer):
    """All groups of the run."""
    cursor, groups = "", []
    while True:
        page = ask(f"{trainer}/v1/groups?" + urllib.parse.urlencode({"cursor": cursor, "wait": 30}))
        cursor, groups = page["cursor"], groups + page["groups"]
        if page["done"]:
            return groups, page["state"]


def whole(groups, count, size):
    """The rows, if every group is there with all its episodes, each once, and they ended well."""
    rows = [row for g in groups for row in g["rows"] if "tokens" in row]  # the last answer of a conversation has all of it
    short = [g["group_id"] for g in groups if g.get("closed") or g["episodes"] != g["size"]]
    if short:
        raise SystemExit(f"groups that are not whole: {short}")
    seen = [episode for g in groups for episode in sorted({row["episode"] for row in g["rows"]})]
    if sorted(seen) != sorted(set(seen)) or len(groups) != count or len(seen) != count * size:
        raise SystemExit(f"{len(groups)} groups with {len(seen)} episodes, {len(set(seen))} different ones, of {count} groups with {size} each")
    if {row["episode"] for row in rows} != set(seen):
        raise SystemExit("there are episodes without tokens")
    for row in rows:
        if row["status"] not in ("completed", "truncated") or not len(row["tokens"]) == len(row["loss_mask"]) == len(row["logprobs"]):
            raise SystemExit(f"episode {row['episode']}: {row['status']}, or its lists differ in length")
    return rows


def differences(rows, weights, device):
    """How far the log probability of each answered token is from what the weights say that are named beside it."""
    models = {str(n): lm.load(path, device)[0] for n, path in enumerate(weights)}
    worst, mixed, continued = 0.0, 0, 0
    for row in rows:
        continued += sum(row["loss_mask"][start - 1] for start in row["answer_starts"])  # the model wrote what is before
        ids = torch.tensor([row["tokens"]], device=device)
        mixed += len(set(row["weight_versions"])) > 1
        for version in set(row["weight_versions"]):
            with torch.inference_mode():
                logits, _ = models[version](ids[:, :-1], torch.ones_like(ids[:, :-1]))
            odds = torch.log_softmax(logits.float(), -1).gather(2, ids[:, 1:, None])[0, :, 0].tolist()
            ends = [*row["answer_starts"][1:], len(row["tokens"])]
            for start, end, of in zip(row["answer_starts"], ends, row["weight_versions"]):
                for at in range(start, end):
                    if of == version and row["loss_mask"][at]:
                        worst = max(worst, abs(odds[at - 1] - row["logprobs"][at]))
    return worst, mixed, continued


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--out", default="grpo-faults")
    p.add_argument("--parley", default=shutil.which("parley") or "parley")
    p.add_argument("--groups", type=int, default=100, help="groups of eight episodes")
    p.add_argument("--device", default="cpu")
    args = p.parse_args()
    check_program(p, args)
    if os.path.isdir(args.out) and os.listdir(args.out):
        p.error(f"{args.out} is not empty: name another folder with --out")
    os.makedirs(args.out, exist_ok=True)

    def path(name):
        return os.path.join(os.path.abspath(args.out), name)

    run(args.parley, "run", os.path.join(HERE, "bots.yaml"), "--set", "episodes=400", "--out", path("bots.parley"), "--quiet")
    run(args.parley, "trajectories", path("bots.parley"), "--shape", "trl-sft", "--out", path("bots.jsonl"))
    run(sys.executable, os.path.join(HERE, "pretrain.py"), path("bots.jsonl"), "--out", path("weights-0.pt"), "--epochs", "2", "--device", args.device)
    weights = [path(f"weights-{n}.pt") for n in range(3)]
    model, words = lm.load(weights[0], torch.device(args.device))
    for other in weights[1:]:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.02 * parameter.std().nan_to_num())
        lm.save(other, model, words)

    server = Server(weights[0], args.device)
    server.start()
    with open(os.path.join(HERE, "train.yaml")) as f:
        text = f.read().replace("http://127.0.0.1:8300", server.url).replace("episodes: 100000", f"episodes: {args.groups}")
    with open(path("train.yaml"), "w") as f:
        f.write(text)
    parley = subprocess.Popen(
        [args.parley, "trainer", path("train.yaml"), "--addr", "127.0.0.1:0", "--out", path("train.parley")], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    trainer = listening(parley, "parley trainer")
    faults, began = Faults(server, trainer, weights), time.monotonic()
    ask(trainer + "/v1/start", {})
    faults.start()
    groups, state = read(trainer)
    faults.over.set()
    faults.join()
    for process in (parley, server.process):
        process.terminate()
        process.wait()
    rows = whole(groups, args.groups, 8)
    worst, mixed, continued = differences(rows, weights, torch.device(args.device))
    print(json.dumps({**faults.counts, "state": state, "groups": len(groups), "episodes": 8 * args.groups, "rows": len(rows), "rows of several versions": mixed, "answers continued": continued,
                      "largest difference of a log probability": worst, "seconds": round(time.monotonic() - began)}, indent=1))
    if state != "complete" or worst > 0.001 or 0 in faults.counts.values():
        raise SystemExit("something was lost, changed, or not tried")


if __name__ == "__main__":
    main()
