"""Rollouts in servers of the real OpenEnv packages: an environment with actions of its own, and one with the tools of an MCP server."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_program import ROOT, environment, program  # noqa: F401

SERVER = '''
import asyncio
import socket
import sys
import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server.http_server import create_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Action, Observation, State

class Spoken(Action):
    message: str

class Heard(Observation):
    echoed_message: str

class Plain(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    steps = 0
    def reset(self, seed=None, episode_id=None, **more):
        self.steps = 0
        return Heard(echoed_message="Ready.")
    def step(self, action, timeout_s=None, **more):
        self.steps += 1
        return Heard(echoed_message=action.message, reward=0.5, done=self.steps == 3)
    @property
    def state(self):
        return State()

class Tools(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True
    def __init__(self):
        server = FastMCP("echo")
        @server.tool
        def echo_message(message: str) -> str:
            "Echo a message."
            return message
        super().__init__(server)
    def reset(self, seed=None, episode_id=None, **more):
        return Observation()
    def _step_impl(self, action, timeout_s=None, **more):
        return Observation()
    @property
    def state(self):
        return State()

parts = (Plain, Spoken, Heard) if sys.argv[1] == "plain" else (Tools, CallToolAction, CallToolObservation)
server = uvicorn.Server(uvicorn.Config(create_app(*parts, env_name="echo", max_concurrent_envs=64), log_level="warning"))
listener = socket.create_server(("127.0.0.1", 0))  # connections wait in it until the server accepts them
print(listener.getsockname()[1], flush=True)
asyncio.run(server.serve(sockets=[listener]))
'''


@pytest.fixture(params=["plain", "tools"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    pytest.importorskip("openenv.core")
    file = tmp_path / "server.py"
    file.write_text(SERVER, encoding="utf-8")
    server = subprocess.Popen([sys.executable, str(file), request.param], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        port = server.stdout.readline().strip()
        assert port, "the server ended"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health") as answer:  # a check waits 5 seconds for it, and it may begin late
            assert answer.status == 200
        yield request.param, f"ws://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def test_openenv(program: str, served: tuple[str, str], tmp_path: Path) -> None:  # noqa: F811
    kind, address = served
    plan, file = str(ROOT / "examples" / "rollout-openenv.yaml"), str(tmp_path / "run.parley")
    given = ["--set", f'params.servers=["{address}"]', "--set", "episodes=6", "--set", "params.max_steps=12"]

    def ran(*args: str) -> str:
        return subprocess.run([program, *args], check=True, env=environment(), capture_output=True, text=True).stdout

    checked = json.loads(ran("check", plan, *given, "--act", "--episodes", "2", "--json"))
    assert checked["servers"][0]["answers"], checked
    assert checked["episodes"]["played"] > 0, checked
    ran("run", plan, *given, "--out", file, "--quiet")
    rows: list[dict[str, Any]] = [json.loads(line) for line in ran("trajectories", file).splitlines()]
    assert rows and all(r["status"] != "failed" for r in rows)
    if kind == "plain":
        assert {r["return"] for r in rows} == {1.5}
        return
    assert all(r["tools"][0]["function"]["name"] == "echo_message" for r in rows)
    results = 0
    for row in rows:
        said = {c["id"]: json.loads(c["function"]["arguments"])["message"] for m in row["messages"] for c in m.get("tool_calls", [])}
        for m in row["messages"]:
            if m["role"] == "tool":
                assert m["content"] == said[m["tool_call_id"]]
                results += 1
    assert results > 0
