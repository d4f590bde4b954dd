"""Improves prompts with parley and with GEPA at one model server, and prints a table. See run."""
import json, math, os, random, re, sqlite3, subprocess, sys, threading, time, urllib.request
from concurrent.futures import ThreadPoolExecutor

import gepa
from gepa.core.adapter import EvaluationBatch

PARLEY, URL, WORK = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 16  # calls in flight, for both
MODELS = int(os.environ.get("MODELS", "8"))  # each name of a simulated model is another landscape
SEED = "Solve the problem."


class Server:
    """Asks the model server, and counts."""

    def __init__(self, model):
        self.model, self.solves, self.breeds = model, 0, 0
        self.lock = threading.Lock()

    def ask(self, messages, **more):
        body = json.dumps({"model": self.model, "messages": messages, **more}).encode()
        req = urllib.request.Request(URL + "/v1/chat/completions", body, {"Content-Type": "application/json", "Authorization": "Bearer none"})
        with urllib.request.urlopen(req) as reply:
            return json.load(reply)["choices"][0]["message"]["content"]

    def solve(self, prompt, question):
        with self.lock:
            self.solves += 1
        head = [{"role": "system", "content": prompt}] if prompt else []
        return self.ask(head + [{"role": "user", "content": question}], temperature=0)


NUMBER = r"-?\d[\d,]*\.?\d*"


def right(text, answer):
    """The checker "number" of parley."""
    for mark in ("####", "answer:", "answer is"):
        at = text.lower().rfind(mark)
        found = re.search(NUMBER, text[at:]) if at >= 0 else None
        if found:
            return abs(float(found[0].replace(",", "").rstrip(".")) - float(answer)) < 0.001
    found = re.findall(NUMBER, text)
    return bool(found) and abs(float(found[-1].replace(",", "").rstrip(".")) - float(answer)) < 0.001


class Adapter:
    """GEPA's adapter: one component, prompt, and the problems asked WIDTH at a time."""

    def __init__(self, server, pool):
        self.server, self.pool = server, pool

    def evaluate(self, batch, candidate, capture_traces=False):
        texts = list(self.pool.map(lambda p: self.server.solve(candidate["prompt"], p["question"]), batch))
        scores = [float(right(t, p["answer"])) for t, p in zip(texts, batch)]
        return EvaluationBatch(outputs=texts, scores=scores, trajectories=list(zip(batch, texts, scores)) if capture_traces else None)

    def make_reflective_dataset(self, candidate, evaluated, components):
        return {"prompt": [{"question": p["question"], "answer": p["answer"], "text": t, "score": s} for p, t, s in evaluated.trajectories]}

    def propose_new_texts(self, candidate, dataset, components):
        return {"prompt": breed(self.server, candidate["prompt"], [r for r in dataset["prompt"] if r["score"] < 1])}


def breed(server, prompt, wrong):
    """Asks for a new prompt with the request of parley's operator reflect, so that the simulated breeder is equally clever for both."""
    server.breeds += 1
    text = ("Here is a prompt, and some problems that a model answered wrongly when it was given this prompt. Work out what in its way of working "
            "went wrong, in general and not for one problem, and write a new prompt that prevents it.")
    text += f'\n\n<prompt number="1">\n{prompt}\n</prompt>'
    for r in wrong[:3]:
        text += f'\n\n<case>\n<problem>\n{r["question"]}\n</problem>\n<expected>{r["answer"]}</expected>\n<response>\n{r["text"]}\n</response>\n</case>'
    schema = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"], "additionalProperties": False}
    reply = server.ask([{"role": "user", "content": text}], seed=server.breeds,
                       response_format={"type": "json_schema", "json_schema": {"name": "new_prompt", "strict": True, "schema": schema}})
    return json.loads(reply)["prompt"]


def problems(file):
    """The problems of a run: training, validation and test, as parley drew them."""
    sets = {"race": {}, "validation": {}, "test": {}}
    for (params,) in sqlite3.connect(file).execute("SELECT DISTINCT params FROM episodes WHERE params LIKE '%\"trial\"%'"):
        trial = json.loads(params)["episode"].get("trial")
        for p in trial["problems"] if trial else []:
            sets[trial["purpose"]][p["id"]] = p
    return [[sets[s][i] for i in sorted(sets[s])] for s in ("race", "validation", "test")]


def interval(xs):
    """The mean with its 95% interval (Student's, over models)."""
    n, mean = len(xs), sum(xs) / len(xs)
    t = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36}.get(n - 1, 2.2 if n < 16 else 2.0)
    half = t * math.sqrt(sum((x - mean) ** 2 for x in xs) / max(1, n - 1) / n)
    return f"{mean:.2f} [{mean - half:.2f}, {mean + half:.2f}]"


QUICK = {"params.population_size": 12, "params.mutation_rate": 0.5, "params.crossover_rate": 0.8, "params.race.minibatch": 10}  # the preset quick


def parley(number, name, **more):
    """Plays parley for one model. Returns its file, the winner, the calls of its search and how long they took."""
    model, file = f"server/solver-{number}", f"{WORK}/{number}-{name}.parley"
    sets = {"providers.server.base_url": URL + "/v1", "agents.solver.model": model, "agents.breeder.model": model, "seed": number, **more}
    flags = [x for k, v in sets.items() for x in ("--set", f"{k}={json.dumps(v)}")]
    began = time.time()
    subprocess.run([PARLEY, "run", HERE + "/plan.yaml", "--out", file, "--quiet"] + flags, check=True, stdout=subprocess.DEVNULL)
    wall = time.time() - began
    verdict = next(json.loads(d) for (d,) in sqlite3.connect(file).execute("SELECT data FROM episodes WHERE cell = 'verdict'"))
    tested = sum(t["accuracy"]["n"] for t in verdict["test"])
    calls = verdict["calls"] - tested
    return file, verdict["winner"]["text"], dict(calls=calls, bred=verdict["bred"], wall=wall * calls / verdict["calls"])


def play(number):
    """Plays parley, then GEPA with as many calls, for one model. Returns what each reached."""
    file, winner, small = parley(number, "small")
    _, quick_winner, quick = parley(number, "quick", **QUICK)
    train, validation, test = problems(file)
    server = Server(f"solver-{number}")
    with ThreadPoolExecutor(WIDTH) as pool:
        adapter = Adapter(server, pool)
        began, random_state = time.time(), number
        best = gepa.optimize(seed_candidate={"prompt": SEED}, trainset=train, valset=validation, adapter=adapter, max_metric_calls=small["calls"],
                             reflection_minibatch_size=3, seed=random_state, logger=Quiet()).best_candidate["prompt"]
        searched = time.time() - began
        made = server.solves
        own = sum(adapter.evaluate(test, {"prompt": best}).scores) / len(test)
        tested = {name: sum(adapter.evaluate(test, {"prompt": text}).scores) / len(test) for name, text in (("seed", SEED), ("small", winner), ("quick", quick_winner))}
    print(f"solver-{number}: {own:.3f} with GEPA, {tested}", file=sys.stderr)
    return dict(seed=dict(solved=tested["seed"]), small=dict(solved=tested["small"], **small), quick=dict(solved=tested["quick"], **quick),
                gepa=dict(solved=own, calls=made, bred=server.breeds, wall=searched))


class Quiet:
    def log(self, message):
        pass


with ThreadPoolExecutor(2) as two:  # models at once
    rows = list(two.map(play, range(1, MODELS + 1)))
mean = lambda name, key: sum(r[name][key] for r in rows) / len(rows)
print("| | solved of 200 held-out problems | calls of the solver | of the breeder | seconds |\n|---|---|---|---|---|")
print(f"| the seed | {interval([r['seed']['solved'] for r in rows])} | | | |")
for title, name in (("parley, small populations", "small"), ("parley, preset quick", "quick"), ("GEPA 0.1.4", "gepa")):
    print(f"| {title} | {interval([r[name]['solved'] for r in rows])} | {mean(name, 'calls'):.0f} | {mean(name, 'bred'):.0f} | {mean(name, 'wall'):.0f} |")
print(f"| parley with small populations less GEPA, model by model | {interval([r['small']['solved'] - r['gepa']['solved'] for r in rows])} | | | |")
