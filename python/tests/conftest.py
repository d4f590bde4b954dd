"""A fake engine that talks to a real worker process over a socket pair."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


class Engine:
    """Speaks the worker protocol to one worker process."""

    def __init__(self, file: Path, cls: str, limit: float = 30, version: int = 1, role: str = "") -> None:
        ours, theirs = socket.socketpair()
        env = {**os.environ, "PARLEY_WORKER": f"fd:{theirs.fileno()}", "PYTHONHASHSEED": "0"}
        self.errors = file.with_suffix(".err").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "parley.worker"], pass_fds=[theirs.fileno()], env=env, stdout=subprocess.PIPE, stderr=self.errors
        )
        theirs.close()
        ours.settimeout(600)  # ends a test that hangs: a busy machine may take long
        self.sock = ours
        self.stream = ours.makefile("rb")
        self.id = 0
        self.answers: dict[int, Any] = {}
        self.write({"parley": version, "file": str(file), "class": cls, "limit": limit, "role": role})
        self.hello = self.read()

    def write(self, message: Any) -> None:
        self.sock.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> Any:
        line = self.stream.readline()
        assert line.endswith(b"\n"), "the worker has ended"
        return json.loads(line)

    def send(self, op: str, **fields: Any) -> int:
        """Send a request and return its id."""
        self.id += 1
        self.write({"id": self.id, "op": op, **fields})
        return self.id

    def wait(self, number: int) -> Any:
        """Return the answer to a request, without its id."""
        while number not in self.answers:
            got = self.read()
            self.answers[got.pop("id")] = got
        return self.answers.pop(number)

    def ask(self, op: str, **fields: Any) -> Any:
        return self.wait(self.send(op, **fields))

    def begin(self, episode: str = "e", params: Any = None, seed: int = 1, deal: int = 0) -> Any:
        return self.ask("begin", episode=episode, params=params or {}, lineup={"a": "x"}, seed=str(seed), deal=deal)

    def reply(self, *replies: Any, episode: str = "e", strand: str = "") -> Any:
        made = [{"text": r, "finish": "stop"} if isinstance(r, str) else r for r in replies]
        return self.ask("replies", episode=episode, strand=strand, replies=made)

    def end(self) -> str:
        """Close the connection and return what the worker wrote to standard error."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.stream.close()
        self.sock.close()
        assert self.process.wait(600) == 0
        assert self.process.stdout is not None and self.process.stdout.read() == b""
        self.process.stdout.close()
        self.errors.seek(0)
        return self.errors.read()


Start = Callable[..., Engine]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a worker with the body of a world, or with a whole file."""
    engines: list[Engine] = []

    def make(play: str = "", whole: str = "", cls: str = "W", limit: float = 30, version: int = 1, role: str = "") -> Engine:
        text = textwrap.dedent(whole)
        if not whole:
            text = "import parley\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t):\n"
            text += textwrap.indent(textwrap.dedent(play), " " * 8)
        file = tmp_path / "w.py"
        file.write_text(text)
        engines.append(Engine(file, cls, limit, version, role))
        return engines[-1]

    yield make
    for e in engines:
        e.process.kill()
        e.process.wait()
        e.errors.close()
