"""A task of inspect_ai through the gateway: every call is in the run file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import parley
from parley import binary

pytest.importorskip("inspect_ai")
pytest.importorskip("openai")

TASK = Path(__file__).resolve().parents[2] / "examples" / "python" / "inspect_task.py"


def serve(*command: str) -> tuple[subprocess.Popen[str], str]:
    """Start a server and return it with its address."""
    server = subprocess.Popen([binary.find(), *command, "--addr", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert server.stdout is not None
    for line in server.stdout:
        found = re.search(r"http://[\d.]+:\d+", line)
        if found:
            return server, found[0]
    raise AssertionError(f"parley {command[0]} ended")


def test_inspect_task(tmp_path: Path) -> None:
    record = tmp_path / "inspect.parley"
    sim, provider = serve("sim")
    gateway, address = serve("gateway", "--upstream", f"openai={provider}/v1", "--out", str(record))
    try:
        env = {**os.environ, "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{address}/v1/sessions/riddles", "INSPECT_LOG_DIR": str(tmp_path / "logs"), "INSPECT_DISPLAY": "none"}
        code = "import sys; from inspect_ai._cli.main import main; main()"
        done = subprocess.run([sys.executable, "-c", code, "eval", TASK.name, "--model", "openai/any"], cwd=TASK.parent, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        for server in (gateway, sim):
            server.terminate()
            server.wait(timeout=60)
    calls = list(parley.open(record).calls())
    assert calls and calls[-1]["error"] is None and calls[-1]["text"]
