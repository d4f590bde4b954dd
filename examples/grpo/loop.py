"""The whole loop in one command: bots, pre-training, and GRPO in four ways, three of them made unable to learn well.

    python examples/grpo/loop.py --out grpo-loop
    python examples/grpo/loop.py --out grpo-games --games --updates 20 --repeat 5 --at-once 15 --bots 3000

The second plays two games instead of mazes, the secrets of `kind: secrets` and the negotiation of haggle.py, each against the model as
it was at first and against itself and its earlier versions. It needs PyTorch and the program parley, and no network. It runs on a CPU in minutes; --large is for a GPU. The result is
results.json, reward.svg and a table on standard output. If it is stopped, run the same command again: it goes on.
"""

import argparse
import json
import math
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ARMS = {"all answers": [], "last answers only": ["--rows", "last"], "shuffled rewards": ["--shuffle"], "no updates": ["--frozen"]}
# A small model can say these: it has a token for each.
WORDS = ["acorn", "bridge", "candle", "drum", "eagle", "fern", "guitar", "hammer"]
GAMES = {
    "secrets": {"kind": "secrets", "params": {"messages": 2, "points": {"both": 3, "only_other": 1}, "forms": ["said"], "words": WORDS, "context": ["chat_history", "secret"]}},
    "haggle": {"kind": "haggle.py:Haggle"},
}
# Who meets whom: the agents policy, which is trained, and rival, an earlier version.
FIRST, SECOND, BOTH = {"first": "policy", "second": "rival"}, {"first": "rival", "second": "policy"}, {"first": "policy", "second": "policy"}
AGAINST = {"the first model": ("vllm/tiny@v0", [FIRST, SECOND]), "itself": ("vllm/tiny@past", [FIRST, SECOND, BOTH])}
COLOURS = {"all answers": "#0072b2", "last answers only": "#d55e00", "shuffled rewards": "#767676", "no updates": "#009e73"}


def run(*args):
    print("$ " + " ".join(map(str, args)), flush=True)
    code = subprocess.run([str(a) for a in args]).returncode
    if code:
        raise SystemExit(f"{args[0]} ended with exit code {code}: see above")


def check_program(p, args):
    """Ends with an error if there is no program parley."""
    if shutil.which(args.parley) is None:
        p.error(f"there is no program {args.parley}: install Parley, or name the program with --parley PATH")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def port_of(plan):
    """The port of the model server: that of the plan, if the run has begun, because a run is continued with its own plan."""
    if not os.path.exists(plan):
        return free_port()
    with open(plan) as f:
        return int(re.search(r"http://127\.0\.0\.1:(\d+)/v1", f.read())[1])


def listening(process, name):
    line = process.stdout.readline()
    if not line.startswith("listening on "):
        raise SystemExit(f"{name}: {line}")
    return line.split()[-1]


class Arm:
    """One training in one way: a model server, a run of Parley and a trainer."""

    def __init__(self, args, name, flags, base, number, game=None, against=None):
        part = os.path.join(args.out, "-".join([*(word.replace(" ", "-") for word in (game, against, name) if word), str(number)]))
        self.name, self.args, self.log, self.game, self.against = name, args, part + ".jsonl", game, against
        port = port_of(part + ".yaml")
        self.server = subprocess.Popen([sys.executable, os.path.join(HERE, "serve.py"), base, "--port", str(port), *args.on], stdout=subprocess.PIPE, text=True)
        server = listening(self.server, "serve.py")
        plan = self.plan("train.yaml", part + ".yaml", server, seed=number + 2)
        self.eval, self.tested = self.plan("eval.yaml", part + "-eval.yaml", server), part + "-eval.parley"
        self.parley = subprocess.Popen(
            [args.parley, "trainer", plan, *trust(args, game), "--addr", "127.0.0.1:0", "--max-ahead", str(args.groups), "--out", part + ".parley"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.trainer = subprocess.Popen([
            sys.executable, os.path.join(HERE, "train.py"), base, "--trainer", listening(self.parley, "parley trainer"), "--server", server,
            "--updates", str(args.updates), "--groups", str(args.groups), "--rate", str(args.rate), "--seed", str(number + 1), "--log", self.log, *args.on, *flags,
        ])

    def plan(self, name, path, server, seed=None):
        """Writes a plan for this server."""
        if self.game:
            trains = seed is not None
            rival, lineups = AGAINST[self.against] if trains else AGAINST["the first model"]
            return play(self.game, path, {
                "seed": seed if trains else 1000, "providers": {"vllm": {"base_url": server + "/v1"}},
                "agents": {"policy": {"model": "vllm/tiny", "max_tokens": 32, "temperature": 1, "trainable": trains},
                           "rival": {"model": rival, "max_tokens": 32, "temperature": 1}},
                "plan": {"matrix": {"lineups": lineups, "repeat": 100000 if trains else 256}}, **({"train": {"group": 8}} if trains else {}),
            })
        with open(os.path.join(HERE, name)) as f:
            text = f.read().replace("http://127.0.0.1:8300/v1", server + "/v1").replace("{size: 3, moves: 12}", self.args.maze)
        if seed is not None:
            text = text.replace("seed: 2", f"seed: {seed}")
        with open(path, "w") as f:
            f.write(text)
        return path

    def wait(self):
        """Waits for the training, and lets the model that it made play the mazes of eval.yaml. Returns the log, and the mean there."""
        failed = self.trainer.wait()
        self.parley.terminate()
        self.parley.wait()
        if failed:
            raise SystemExit(f"{self.name}: the trainer failed")
        told = subprocess.run([self.args.parley, "run", self.eval, *trust(self.args, self.game), "--out", self.tested, "--quiet", "--json"], stdout=subprocess.PIPE, text=True)
        self.server.terminate()
        self.server.wait()
        if told.returncode not in (0, 1):  # 1: some episodes failed, as when nobody says anything
            raise SystemExit(f"{self.name}: the evaluation failed")
        with open(self.log) as f:
            return [json.loads(line) for line in f], next(s["mean"] for s in json.loads(told.stdout)["agents"] if s.get("agent") == "policy" and s["score"] in ("reward", "points"))


def play(game, path, keys):
    """Writes a plan of a game. What JSON is, is YAML too."""
    with open(path, "w") as f:
        json.dump({**GAMES[game], **keys}, f, indent=1)
    return path


def trust(args, game):
    return ["--trust", "code=" + os.path.join(args.out, "haggle.py")] if game == "haggle" else []


def games(args):
    """Every game: bots, pre-training, and every way to train against everybody, in several trainings."""
    shutil.copy(os.path.join(HERE, "haggle.py"), args.out)
    sdk = os.path.join(HERE, "..", "..", "python", "src")
    os.environ["PYTHONPATH"] = os.pathsep.join([sdk, os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [sdk])
    bases = {}
    for game in GAMES:
        part = os.path.join(args.out, game)
        bases[game] = part + ".pt"
        if os.path.exists(bases[game]):
            continue
        run(args.parley, "run", play(game, part + "-bots.yaml", {"seed": 1, "episodes": args.bots, "agents": {"bot": {"model": "sim/small"}}}), *trust(args, game), "--out", part + "-bots.parley", "--quiet")
        run(args.parley, "trajectories", part + "-bots.parley", "--shape", "trl-sft", "--out", part + "-bots.jsonl", "--force")
        run(sys.executable, os.path.join(HERE, "pretrain.py"), part + "-bots.jsonl", "--out", bases[game], "--epochs", "12", *args.size, *args.on)
    arms = {name: flags for name, flags in ARMS.items() if name != "last answers only"}
    return trainings(args, [(name, flags, bases[game], n, game, against) for n in range(args.repeat) for game in GAMES for against in AGAINST for name, flags in arms.items()])


def trainings(args, todo):
    """Trains in every way, some at once. Returns logs and means of the evaluations, by what was trained how."""
    logs, tests = {}, {}
    with ThreadPoolExecutor(args.at_once) as pool:
        for (name, _, _, _, *game), (log, test) in zip(todo, pool.map(lambda one: Arm(args, *one).wait(), todo)):
            key = f"{game[0]}, against {game[1]}: {name}" if game else name
            logs.setdefault(key, []).append(log)
            tests.setdefault(key, []).append(test)
    return logs, tests


# Student's t for a 95% interval of so many values.
T95 = [math.inf, math.inf, 12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26]


def interval(values):
    """The mean and half of its 95% interval."""
    mean, n = sum(values) / len(values), len(values)
    spread = math.sqrt(sum((v - mean) ** 2 for v in values) / max(1, n - 1))
    return mean, (T95[n] if n < len(T95) else 1.96) * spread / math.sqrt(n)


def ending(logs, last):
    """The mean reward of the last updates, with a 95% interval: over the trainings, or over the updates of a single one."""
    rewards = [[point["reward"] for point in log[-last:]] for log in logs]
    return interval([sum(r) / len(r) for r in rewards]) if len(logs) > 1 else interval(rewards[0])


def curve(logs):
    """For each update the mean reward and its 95% interval over the mazes; for several trainings, of five updates and over the trainings."""
    if len(logs) == 1:
        return [(p["update"], p["reward"], p["low"], p["high"]) for p in logs[0]]

    def recent(log, n):
        some = [p["reward"] for p in log[max(0, n - 4):n + 1]]
        return sum(some) / len(some)

    points = [(n, *interval([recent(log, n) for log in logs])) for n in range(min(map(len, logs)))]
    return [(n, mean, mean - half, mean + half) for n, mean, half in points]


def picture(logs, path):
    """Reward over updates, with intervals."""
    wide, high, left, top = 720, 360, 50, 20
    curves = {name: curve(trainings) for name, trainings in logs.items()}
    count = max(map(len, curves.values()))

    def at(n, reward):
        return f"{left + n * (wide - left - 20) / max(1, count - 1):.1f},{top + (1 - reward) * (high - top - 50):.1f}"

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" font-family="sans-serif" font-size="12">',
           f'<rect width="{wide}" height="{high}" fill="#ffffff"/>']
    for tenth in range(0, 11, 2):
        y = float(at(0, tenth / 10).split(",")[1])
        out.append(f'<path d="M{left} {y}H{wide - 20}" stroke="#dddddd"/><text x="{left - 8}" y="{y + 4}" text-anchor="end">{tenth / 10:.1f}</text>')
    for k, (name, points) in enumerate(curves.items()):
        band = [at(n, min(1, high)) for n, _, _, high in points] + [at(n, max(0, low)) for n, _, low, _ in reversed(points)]
        out.append(f'<polygon points="{" ".join(band)}" fill="{COLOURS[name]}" opacity="0.15"/>')
        out.append(f'<polyline points="{" ".join(at(n, mean) for n, mean, _, _ in points)}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        out.append(f'<text x="{left + 10 + 190 * k}" y="{high - 8}" fill="{COLOURS[name]}">{name}</text>')
    out.append(f'<text x="{wide - 20}" y="{high - 28}" text-anchor="end">update {count}</text></svg>')
    with open(path, "w") as f:
        f.write("\n".join(out))


def mazes(args):
    """Bots, pre-training, and every way to train, in several trainings."""
    base, part = os.path.join(args.out, "base.pt"), os.path.join(args.out, "bots")
    with open(os.path.join(HERE, "bots.yaml")) as f:
        text = f.read().replace("{size: 3, moves: 12}", args.maze).replace("episodes: 4000", f"episodes: {args.bots}")
    with open(part + ".yaml", "w") as f:
        f.write(text)
    if not os.path.exists(base):
        run(args.parley, "run", part + ".yaml", "--out", part + ".parley", "--quiet")
        run(args.parley, "trajectories", part + ".parley", "--shape", "trl-sft", "--out", part + ".jsonl", "--force")
        run(sys.executable, os.path.join(HERE, "pretrain.py"), part + ".jsonl", "--out", base, *args.size, *args.on)
    return trainings(args, [(name, flags, base, n) for n in range(args.repeat) for name, flags in ARMS.items()])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--out", default="grpo-loop")
    p.add_argument("--parley", default=shutil.which("parley") or "parley")
    p.add_argument("--updates", type=int, default=40)
    p.add_argument("--groups", type=int, default=16)
    p.add_argument("--repeat", type=int, default=1, help="trainings of each kind, which begin with the same model")
    p.add_argument("--at-once", type=int, default=len(ARMS), help="how many trainings at once")
    p.add_argument("--large", action="store_true", help="a larger model, larger mazes")
    p.add_argument("--bots", type=int, help="how many episodes bots play for pre-training: 4000 by default, and 20000 with --large")
    p.add_argument("--games", action="store_true", help="two games instead of mazes")
    p.add_argument("--device")
    args = p.parse_args()
    check_program(p, args)
    args.on = ["--device", args.device] if args.device else []
    args.maze, args.rate, size, bots = "{size: 3, moves: 12}", 5e-4, ["--width", "64", "--layers", "2"], 4000
    if args.large:
        args.maze, args.rate, size, bots = "{size: 4, moves: 20}", 2e-4, ["--width", "256", "--layers", "6"], 20000
    os.makedirs(args.out, exist_ok=True)
    args.size, args.bots = size, args.bots or bots
    settings, asked = os.path.join(args.out, "settings.json"), json.dumps([args.games or args.maze, args.updates, args.groups, args.repeat, args.bots])
    if os.listdir(args.out):
        if not os.path.exists(settings) or open(settings).read() != asked:
            p.error(f"{args.out} has something else: name another folder with --out, so that old answers are not taken for new ones")
    with open(settings, "w") as f:
        f.write(asked)
    began = time.monotonic()
    logs, tests = games(args) if args.games else mazes(args)
    last = max(1, args.updates // 4)
    if not args.games:
        picture(logs, os.path.join(args.out, "reward.svg"))
    with open(os.path.join(args.out, "results.json"), "w") as f:
        json.dump({"maze": args.maze, "updates": args.updates, "groups": args.groups, "seconds": time.monotonic() - began, "logs": logs, "tests": tests}, f)
    width = max(map(len, logs))
    print(f"\n{'trained on':{width}} {'first update':>14} {'last ' + str(last) + ' updates':>24} {'held-out ' + ('games' if args.games else 'mazes'):>20}")
    for name, trainings in logs.items():
        (mean, half), (test, wide) = ending(trainings, last), interval(tests[name])
        held = f"{test:.3f} ± {wide:.3f}" if len(trainings) > 1 else f"{test:.3f}"
        print(f"{name:{width}} {interval([log[0]['reward'] for log in trainings])[0]:>14.3f} {f'{mean:.3f} ± {half:.3f}':>24} {held:>20}")


if __name__ == "__main__":
    main()
