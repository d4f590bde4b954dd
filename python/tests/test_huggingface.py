"""Records of rollouts in the libraries that read them: Hugging Face's datasets, and the data functions of TRL without its trainers, which need torch."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_program import ROOT, environment, program  # noqa: F401

TEMPLATE = (
    "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.name }}({{ c.function.arguments.items() | list }}){% endfor %}\n{% endfor %}"
)


@pytest.fixture(scope="module")
def run(program: str, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    file = tmp_path_factory.mktemp("run") / "tools.parley"
    command = [program, "run", str(ROOT / "examples" / "rollout-tools.yaml"), "--set", "episodes=40", "--out", str(file), "--quiet"]
    subprocess.run(command, check=True, env=environment(), capture_output=True)
    return file


def written(program: str, run: Path, shape: str) -> Path:  # noqa: F811
    out = run.with_name(f"{shape}.jsonl")
    subprocess.run([program, "trajectories", str(run), "--shape", shape, "--out", str(out), "--force"], check=True, capture_output=True)
    return out


@pytest.mark.parametrize(("shape", "columns"), [("trl-sft", ["prompt", "completion"]), ("trl-dpo", ["prompt", "chosen", "rejected"]), ("trl-grpo", ["prompt"])])
def test_trl(program: str, run: Path, shape: str, columns: list[str]) -> None:  # noqa: F811
    datasets, data, transformers = pytest.importorskip("datasets"), pytest.importorskip("trl.data_utils"), pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    rows: Any = datasets.load_dataset("json", data_files=str(written(program, run, shape)), split="train", cache_dir=str(run.parent / "cache"))
    assert len(rows) > 0 and set(columns) | {"tools"} <= set(rows.column_names)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"x": 0}, unk_token="x"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, chat_template=TEMPLATE)
    called = False
    for row in rows:
        assert data.is_conversational(row)
        tools = json.loads(row["tools"])
        assert [t["function"]["name"] for t in tools] == ["price"] and tools[0]["function"]["parameters"]["required"] == ["item"]
        text = data.maybe_apply_chat_template({c: row[c] for c in columns}, tokenizer, tools)
        whole = "".join(text.values())
        assert "What does it cost?" in whole and "tools: " in whole
        called = called or "price([('item', '" in whole
    assert called or shape == "trl-grpo"


def test_openai_fine_tuning(program: str, run: Path) -> None:  # noqa: F811
    """Each line is as OpenAI documents it: known keys, calls with their results, and an answer at the end."""
    lines = [json.loads(line) for line in written(program, run, "openai-ft").read_text(encoding="utf-8").splitlines()]
    assert lines
    for line in lines:
        assert set(line) == {"messages", "tools"} and line["tools"][0]["type"] == "function"
        waiting: list[str] = []
        for m in line["messages"]:
            assert set(m) <= {"role", "content", "tool_calls", "tool_call_id", "weight"} and m["role"] in ("system", "user", "assistant", "tool")
            if m["role"] == "tool":
                waiting.remove(m["tool_call_id"])
                continue
            assert not waiting, "a call has no result"
            assert isinstance(m.get("content"), str) or m["tool_calls"]
            for c in m.get("tool_calls", []):
                assert c["type"] == "function" and isinstance(json.loads(c["function"]["arguments"]), dict)
                waiting.append(c["id"])
        assert not waiting and line["messages"][-1]["role"] == "assistant"
