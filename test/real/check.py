"""Runs parley against real servers and prints what was seen. It is started by test/real/run, which installs
them. Every check states what parley has to do; it ends with status 1 if one does not hold."""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import liar
import rows
import servers

REPO = pathlib.Path(__file__).resolve().parents[2]
PROMPT = "Once upon a time there was a"

PROGRAM = """
import json, os, sys, urllib.request
messages = [{"role": "user", "content": sys.stdin.read()}]
for _ in range(2):
    body = json.dumps({"model": "any", "messages": messages, "max_tokens": 32}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
    said = json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]
    messages += [{"role": "assistant", "content": said}, {"role": "user", "content": "And then?"}]
open("said.txt", "w").write(said + ".")
"""


# The score that is the reward of each kind, and how many tokens an answer needs, where it is structured.
REWARDS = {
    "secrets": ("points", 0), "rollout": ("reward", 0), "evolve": ("accuracy_train", 0), "task": ("reward", 0), "auction": ("profit", 0),
    "diplomacy": ("score", 1000), "scenario": ("concession", 1000),
}


class Failed(Exception):
    """A check that does not hold."""


def want(condition, *details):
    if not condition:
        raise Failed(" ".join(str(d) for d in details)[:600])


class Check:
    def __init__(self, args, server):
        self.args, self.server, self.work = args, server, pathlib.Path(args.work)
        self.cells, self.failed, self.runs, self.ids = {}, [], 0, None

    def parley(self, *words, env=None, timeout=300, codes=(0,), program=None):
        """Runs parley, which has to end with one of the exit codes."""
        p = subprocess.run([program or self.args.parley, *map(str, words)], capture_output=True, text=True, timeout=timeout, env=os.environ | (env or {}))
        want(p.returncode in codes, f"exit code {p.returncode}, want one of {codes}:", " ".join(map(str, words)), p.stderr[-400:])
        return p

    def do(self, feature, check, *words):
        """Makes a cell of the table: what a check returns, or that it failed."""
        began = time.monotonic()
        try:
            self.cells[feature] = check(*words) or "yes"
        except (Failed, subprocess.TimeoutExpired, KeyError, ValueError) as e:
            self.cells[feature] = "**fails**"
            self.failed.append(f"{self.server.title}: {feature}: {e}")
        print(f"{self.server.title}: {feature}: {self.cells[feature]} ({time.monotonic() - began:.1f}s)", flush=True)

    def ask(self, dialect):
        p = self.parley("ask", "--model", "lab/" + self.server.model, "--base-url", self.server.url, "--dialect", dialect, "--max-tokens", "16", "--no-cache",
                        "--retries", "0", "--json", PROMPT, codes=(0, 1))
        record = json.loads(p.stdout)
        if p.returncode == 1 and record["error"].get("status") == 404:
            return "no such path"
        want(p.returncode == 0, record)
        used = record["response"]["usage"]
        want(used["output"] > 0 and used["input"] > 0, record)
        return "yes"

    def plan(self, kind, **keys):
        """Writes a plan for this server."""
        able = {"match": "lab/*"} | self.server.lacks | ({"token_ids": True} if self.ids else {})
        provider = {"dialect": "openai", "base_url": self.ids.url if self.ids else self.server.url, "capabilities": [able], "limits": {"concurrency": 4}}
        if self.ids:
            provider["stream"] = "never"
        self.runs += 1
        path = self.work / f"{self.server.name}-{kind}-{self.runs}.json"
        path.write_text(json.dumps({"kind": kind, "seed": 1, "providers": {"lab": provider}, **keys}))
        return path

    def agent(self, tokens):
        return {"model": "lab/" + self.server.model, "max_tokens": tokens} | ({"trainable": True} if self.ids else {})

    def small(self, kind):
        """Writes a small plan of a kind."""
        a = {"a": self.agent(64)}
        return {
            "secrets": lambda: self.plan(kind, episodes=2, agents=a, lineup={"first": "a", "second": "a"}, params={"messages": 1}),
            "rollout": lambda: self.plan(kind, episodes=2, agents=a, lineup={"agent": "a"},
                                         params={"env": "arithmetic", "env_params": {"problems": 1, "terms": 2}, "group": 2, "max_steps": 2}),
            "evolve": lambda: self.plan(kind, agents=a, params={"preset": "quick", "population_size": 4, "max_generations": 1,
                                                               "problems": {"source": "arithmetic", "train": 2, "validation": 2, "test": 2}}),
            "diplomacy": lambda: self.plan(kind, episodes=1, agents=a | {"b": {"bot": "greedy"}},
                                           lineup={p: "b" for p in "AUSTRIA ENGLAND GERMANY ITALY RUSSIA TURKEY".split()} | {"FRANCE": "a"},
                                           params={"rounds": 0, "diary": False, "max_year": 1901}),
            "scenario": lambda: self.plan(kind, episodes=1, agents=a, lineup={s: "a" for s in "growers waterworks hydro narrator analyst validator".split()},
                                          params={"folder": str(REPO / "examples/scenario/drought"), "turns": 1}),
            "task": lambda: self.plan(kind, episodes=2, agents={"a": {"program": {"command": [sys.executable, str(self.work / "program.py")]}, "model": "lab/" + self.server.model}},
                                      lineup={"solver": "a"}, params={"tasks": "tasks.jsonl"}),
            "auction": lambda: self.plan(kind, episodes=2, agents=a, lineup={"bidder1": "a", "bidder2": "a"}, params={"rounds": 2}),
        }[kind]()

    def world(self, kind):
        """Plays a small plan. Its episodes must end; where nothing could be measured they must have failed."""
        plan = self.small(kind)
        out = json.loads(self.parley("run", plan, "--allow-files", REPO / "examples/scenario", "--out", plan.with_suffix(".parley"), "--json", "--quiet", codes=(0, 1)).stdout)
        episodes, calls = out["episodes"], out["calls"]
        want(out["state"] == "complete" and episodes["complete"] + episodes["failed"] == episodes["total"], out)
        self.parley("show", plan.with_suffix(".parley"))
        if kind == "scenario" and calls["failed"] == calls["total"]:
            want(episodes["failed"] == episodes["total"], "all", calls["total"], "calls failed, and the episode counts as complete:", out)
        return f"{episodes['complete']} of {episodes['total']} episodes, {calls['failed']} of {calls['total']} calls failed"

    def rows(self, kind, reward, tokens, vocabulary, url):
        """Plays a small plan with token ids. A tokenizer of somebody else finds the answers in the rows, where they were sampled."""
        self.ids = rows.Ids(url)
        try:
            (self.work / "program.py").write_text(PROGRAM)
            (self.work / "tasks.jsonl").write_text(json.dumps({"id": "one", "prompt": PROMPT, "check": "test -s said.txt"}))
            plan = self.small(kind)
            parley = self.args.auction if kind == "auction" else self.args.parley
            file, out = plan.with_suffix(".parley"), plan.with_suffix(".jsonl")
            trust = ["--trust", f"program={sys.executable} {self.work / 'program.py'}", "--trust", f"code={self.work / 'tasks.jsonl'}"] if kind == "task" else []
            longer = ["--set", f"agents.a.max_tokens={tokens}"] if tokens else []
            self.parley("run", plan, "--set", "train={}", *longer, "--allow-files", REPO / "examples/scenario", "--out", file, "--quiet", *trust, codes=(0, 1),
                        program=parley, timeout=1200)
            self.parley("trajectories", file, "--out", out, program=parley)
            scores = map(json.loads, self.parley("export", file, "--table", "scores", "--format", "jsonl", program=parley).stdout.splitlines())
            rewards = {(s["episode"], s["seat"]): s["value"] for s in scores if s["name"] == reward}
            return rows.rows(out, self.ids.sampled, rewards, vocabulary, want)
        finally:
            self.ids.shutdown()
            self.ids = None

    def trained(self):
        """Checks the rows of every kind, on a server with room for all prompts."""
        weights = rows.longer(self.args.weights, self.work / "longer.gguf", 8192)
        server = servers.LlamaCpp(argparse.Namespace(**vars(self.args) | {"weights": weights}))
        vocabulary = rows.Vocabulary(weights)
        server.start()
        try:
            server.wait()
            for kind, (reward, tokens) in REWARDS.items():
                self.do("rows of " + kind, self.rows, kind, reward, tokens, vocabulary, server.url)
        finally:
            server.kill()

    def waves(self):
        """A plan that wants batches of a server without a batch API is refused, in words."""
        plan = self.plan("secrets", episodes=2, agents={"a": self.agent(16)}, lineup={"first": "a", "second": "a"}, params={"messages": 1},
                         pace="wave", batch={"route": "batch"})
        p = self.parley("run", plan, "--out", plan.with_suffix(".parley"), codes=(0, 1, 2))
        want(p.returncode == 2 and "batch" in p.stderr and "lab" in p.stderr, f"exit code {p.returncode}, and no word that lab has no batch API:", p.stderr[-300:])
        return "refused"

    def gateway(self, program):
        """Runs a program, unmodified, through the gateway."""
        record = self.work / f"{self.server.name}-{program}.parley"
        with subprocess.Popen([self.args.parley, "gateway", "--addr", "127.0.0.1:0", "--upstream", "lab=" + self.server.url, "--out", str(record)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as gateway:
            try:
                url = gateway.stdout.readline().removeprefix("listening on ").strip()
                want(url, "the gateway does not start")
                here = f"{url}/v1/sessions/{program}"
                env = os.environ | {
                    "OPENAI_BASE_URL": here, "ANTHROPIC_BASE_URL": here, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "MODEL": self.server.model,
                    "PYTHONPATH": f"{self.args.dir}/{program}", "SCHEMA": "" if "no_schema" in self.server.lacks else "1",
                    "RESPONSES": "1" if self.server.responses and self.cells["ask in responses"] == "yes" else "",
                }
                source = pathlib.Path(__file__).parent / "programs" / ("with_" + program + (".mjs" if program == "vercel" else ".py"))
                if program == "vercel":  # modules are looked for where a program is
                    copy = pathlib.Path(self.args.dir) / "vercel" / source.name
                    copy.write_text(source.read_text())
                    source = copy
                words = ["node" if program == "vercel" else sys.executable, str(source)]
                p = subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)
            finally:
                gateway.terminate()
                gateway.wait(60)
        want(p.returncode == 0, p.stderr[-500:])
        want(json.loads(self.parley("show", record, "--json").stdout), "nothing was recorded")
        return "yes"

    def restart(self, down):
        """Kills the server in the middle of a run and starts it again after some seconds: the run goes on."""
        plan = self.plan("secrets", episodes=12, agents={"a": self.agent(24)}, lineup={"first": "a", "second": "a"}, params={"messages": 2})
        out = plan.with_suffix(".parley")
        run = subprocess.Popen([self.args.parley, "run", str(plan), "--out", str(out), "--json", "--quiet"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            while run.poll() is None and self.recorded(out) < 4:
                time.sleep(0.05)
            want(run.poll() is None, "the run ended before the server could be killed")
            self.server.kill()
            time.sleep(down)
            self.server.start()
            self.server.wait()
            stdout, stderr = run.communicate(timeout=300)
        finally:
            run.kill()
        want(stdout, "the run ended without a word:", stderr[-400:])
        end = json.loads(stdout)
        want(run.returncode == 0 and end["episodes"]["complete"] == 12 and end["calls"]["failed"] == 0, f"{down} seconds without a server:", end["state"], end["reason"],
             end["episodes"], end["calls"], stderr[-300:])
        return "yes"

    def recorded(self, out):
        """How many calls a run file holds, while it is written."""
        if not out.exists():
            return 0
        p = subprocess.run([self.args.parley, "show", str(out), "--json"], capture_output=True, text=True)
        return json.loads(p.stdout)["calls"] if p.returncode == 0 else 0

    def budget(self, url, model, longest):
        """Spends no more than the budget and one answer, whatever the server makes of limits."""
        prices = self.work / "prices.json"
        prices.write_text(json.dumps({"models": {"lab/" + model: {"input": 1, "output": 10, "context": 2048}}}))
        questions = self.work / "questions.jsonl"
        questions.write_text("".join(json.dumps({"id": i, "prompt": f"{PROMPT} {i}"}) + "\n" for i in range(100)))
        budget = 0.005
        answer = longest * 10 / 1e6  # the price of one
        p = self.parley("ask", questions, "--model", "lab/" + model, "--base-url", url, "--max-tokens", "8", "--no-cache", "--budget", budget, "--prices", prices,
                        "--json", "--quiet", "--out", self.work / f"{self.server.name}-{self.runs}-answers.jsonl", codes=(0, 1, 3))
        self.runs += 1
        spent = json.loads(p.stdout)["cost_usd"]
        want(spent <= budget + answer, f"${spent:.4f} spent of ${budget:.4f}, and an answer costs ${answer:.4f}")
        return f"${spent:.4f} of ${budget:.4f}"


def check(args, server):
    c = Check(args, server)
    server.start()
    try:
        server.wait()
        for dialect in ("openai", "responses", "anthropic"):
            c.do("ask in " + dialect, c.ask, dialect)
        for kind in ("secrets", "rollout", "evolve", "diplomacy"):
            c.do(kind, c.world, kind)
        for program in args.programs.split():
            c.do("gateway with " + program, c.gateway, program)
        c.do("scenario", c.world, "scenario")
        c.do("waves", c.waves)
        if server.name == "llamacpp" and args.tokenizers:
            c.trained()
        if server.patience < 120:  # the others take minutes to start
            if not args.short:
                c.do("killed, back at once", c.restart, 0)
            c.do("killed, back after 8 s", c.restart, 8)
        c.do("budget", c.budget, server.url, server.model, servers.CONTEXT)
    finally:
        server.kill()
    return c


def table(checks):
    """The table of docs/how-to/servers.md."""
    features = list(dict.fromkeys(f for c in checks for f in c.cells))
    print("| | " + " | ".join(c.server.title for c in checks) + " |")
    print("|---|" + "---|" * len(checks))
    for f in features:
        print(f"| {f} | " + " | ".join(c.cells.get(f, "") for c in checks) + " |")


def main():
    parser = argparse.ArgumentParser()
    for flag in ("--parley", "--dir", "--work", "--weights", "--servers", "--programs"):
        parser.add_argument(flag, required=True)
    parser.add_argument("--auction", required=True)
    for flag in ("--short", "--table", "--tokenizers"):
        parser.add_argument(flag, action="store_true")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that servers are stopped
    checks = [check(args, servers.ALL[name](args)) for name in args.servers.split()]
    scripted = Check(args, argparse.Namespace(name="scripted", title="a server that ignores everything"))
    lies = liar.Liar()
    scripted.do("budget", scripted.budget, lies.url, "liar", liar.LENGTH)
    checks.append(scripted)
    if args.table:
        table([c for c in checks if len(c.cells) > 1])
    failed = [f for c in checks for f in c.failed]
    for f in failed:
        print("real: FAILED:", f, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
