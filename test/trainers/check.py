"""Loads every shape of parley trajectories in the libraries that read them: check.py FOLDER PACKAGES.

FOLDER has a file for each shape of two runs: whole.SHAPE.jsonl and cut.SHAPE.jsonl. PACKAGES has the libraries, without torch and what else needs
gigabytes. So classes of veRL and AReaL are taken from their files, by name, without the modules around them.
"""

import ast
import http.server
import json
import re
import sys
import threading
import types
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
folder, packages = Path(sys.argv[1]), Path(sys.argv[2])
RUNS = ("whole", "cut")


def records(run, shape):
    return [json.loads(line) for line in (folder / f"{run}.{shape}.jsonl").read_text().splitlines()]


def verl():
    """AgentLoopOutput takes a record as it is, and keeps its types."""
    import pydantic

    tree = ast.parse((packages / "verl/experimental/agent_loop/agent_loop.py").read_text())
    names: dict[str, Any] = {"BaseModel": pydantic.BaseModel, "ConfigDict": pydantic.ConfigDict, "Optional": Optional, "Any": Any}
    wanted = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name in ("AgentLoopMetrics", "AgentLoopOutput")]
    exec(compile(ast.Module(wanted, []), "agent_loop.py", "exec"), names)
    for run in RUNS:
        for r in records(run, "verl"):
            out = names["AgentLoopOutput"](**r)
            assert len(out.response_ids) == len(out.response_mask) == len(out.response_logprobs) and out.reward_score == r["reward_score"], r
            assert isinstance(out.extra_fields["advantage"], (int, float)) and r["uid"].endswith("/agent"), r


def areal():
    """Records have the tensors of AReaL's own workflow, in its types and of one length."""
    import numpy

    text = (packages / "areal/workflow/rlvr.py").read_text()
    types_of = dict(re.findall(r'"(\w+)": torch\.(?:tensor|ones)\(.*?dtype=torch\.(\w+)', text))
    assert {"input_ids", "loss_mask", "logprobs", "versions", "attention_mask", "rewards"} <= set(types_of), types_of
    for run in RUNS:
        for r in records(run, "areal"):
            arrays = {name: numpy.array(r[name], dtype=kind) for name, kind in types_of.items()}
            assert {a.shape for name, a in arrays.items() if name != "rewards"} == {(len(r["input_ids"]),)} and arrays["rewards"].shape == (), r


def slime():
    """Types of the fields of Sample that records have. slime is not in the package index, so its class is not loaded."""
    kinds = {
        "group_index": int, "index": int, "rollout_id": int, "tokens": list, "response_length": int, "reward": (int, float), "loss_mask": list,
        "weight_versions": list, "rollout_log_probs": list, "status": str, "metadata": dict,
    }
    for run in RUNS:
        all = records(run, "slime")
        for r in all:
            assert set(r) == set(kinds) and all_of(r, kinds) and len(r["loss_mask"]) == r["response_length"] and r["status"] in ("completed", "truncated"), r
        assert len({r["index"] for r in all}) == len(all)


def all_of(record, kinds):
    return all(isinstance(record[k], kind) and not isinstance(record[k], bool) for k, kind in kinds.items())


def trl():
    """The rollout_func of examples/trl_rollout.py returns what GRPOTrainer asks for; an episode of several parts is refused."""
    import trl_rollout

    text = (packages / "trl/trainer/grpo_trainer.py").read_text()
    required = ast.literal_eval(re.search(r"required_keys = (\{.*?\})", text).group(1))
    assert 'extra_fields.pop("env_mask"' in text
    for run in RUNS:
        groups = {}
        for r in records(run, "rows"):
            if r["is_trainable"]:
                groups.setdefault(r["group_id"], []).append(r)
        page = json.dumps({"cursor": "end", "done": True, "state": "complete", "groups": [{"rows": rows} for rows in groups.values()]}).encode()

        class Server(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(200)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        rollouts = trl_rollout.Rollouts(f"http://127.0.0.1:{server.server_address[1]}")
        prompts = [p for r in records("whole", "trl-grpo") for p in [r["prompt"]] * 4]
        try:
            out = rollouts.take(prompts, types.SimpleNamespace(num_generations=4))
        except ValueError as e:
            assert run == "cut" and "one part of one agent" in str(e), e
            continue
        finally:
            server.shutdown()
        assert run == "whole" and required <= set(out) and {len(v) for v in out.values()} == {len(prompts)}, out.keys()
        for ids, logprobs, mask in zip(out["completion_ids"], out["logprobs"], out["env_mask"]):
            assert len(ids) == len(logprobs) == len(mask) and 1 in mask
        assert trl_rollout.reward(prompts, **{k: out[k] for k in out if k not in required}) == out["episode_return"]


def huggingface():
    """datasets loads every shape. Each record has the same columns."""
    import datasets

    datasets.disable_progress_bars()
    for file in sorted(folder.glob("*.jsonl")):
        rows = datasets.load_dataset("json", data_files=str(file), split="train", cache_dir=str(folder / "cache"))
        assert len(rows) == len(file.read_text().splitlines()) > 0, file.name


def advantages():
    """The advantage of every record is that of GRPO over episodes, each counted once: computed again from rows."""
    import statistics

    for run in RUNS:
        episodes = {}
        for r in records(run, "rows"):
            episodes.setdefault((r["group_id"], r["agent_id"]), {})[r["episode"]] = r["return"]
        for r in records(run, "sequences"):
            peers = list(episodes[r["group"], r["agent"]].values())
            want = (r["reward"] - statistics.mean(peers)) / (statistics.stdev(peers) + 1e-6)
            assert abs(r["advantage"] - want) < 1e-6, (r["advantage"], want)
        parts = {}
        for r in records(run, "sequences"):
            parts[r["episode"]] = parts.get(r["episode"], 0) + 1
        assert (max(parts.values()) > 1) == (run == "cut"), parts


for check in (verl, areal, slime, trl, huggingface, advantages):
    check()
    print(f"trainers: {check.__name__}: {check.__doc__.splitlines()[0]}")
