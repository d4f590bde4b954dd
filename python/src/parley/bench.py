"""Measures the worker alone: ``python -m parley.bench``.

A driver process sends replies of 0.5 KB as fast as the worker answers with calls of 1 KB, for many live episodes at
once. It prints calls per second of the worker's own CPU time, and its memory.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time

from . import _json

_WORLD = '''
import parley

class Bench(parley.World):
    rounds: int = 10

    def seats(self):
        return ["a"]

    async def play(self, t):
        for _ in range(self.rounds):
            await t.one("a", PROMPT, label="say")

PROMPT = "All work and no play makes a dull world. " * 25
'''
_REPLY = b'{"text":"%b","finish":"stop"}' % (b"It depends on what you ask of it, I suppose. " * 11)
_FLIGHT = 100  # requests on the way: so few that the buffers of a socket hold them


class _Worker:
    """A worker process and the connection to it."""

    def __init__(self, folder: str, codec: str) -> None:
        ours, theirs = socket.socketpair()
        code = f"from parley import _json, worker; _json.use({codec!r}); worker.main()"
        env = {**os.environ, "PARLEY_WORKER": f"fd:{theirs.fileno()}", "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen([sys.executable, "-c", code], pass_fds=[theirs.fileno()], env=env)
        theirs.close()
        self.sock = ours
        self._rest = b""
        self.send(b'{"parley":1,"file":"%b","class":"Bench","limit":60}\n' % os.path.join(folder, "bench_world.py").encode())
        self.lines()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def lines(self) -> list[bytes]:
        """Wait for answers."""
        while True:
            data = self.sock.recv(1 << 20)
            if not data:
                raise SystemExit("the worker has ended")
            lines = (self._rest + data).split(b"\n")
            self._rest = lines.pop()
            if lines:
                return lines

    def cpu(self) -> float:
        """Return the CPU seconds that the worker has used."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the memory of the worker in MB."""
        with open(f"/proc/{self.process.pid}/status") as f:
            found = re.search(r"VmRSS:\s+(\d+)", f.read())
        return int(found[1]) / 1000 if found else 0.0

    def close(self) -> None:
        self.sock.close()
        self.process.wait()


def _begin(worker: _Worker, live: int, rounds: int) -> None:
    """Begin episodes and wait until each asks."""
    for first in range(0, live, _FLIGHT):
        numbers = range(first, min(live, first + _FLIGHT))
        worker.send(b"".join(
            b'{"id":%d,"op":"begin","episode":"%d","params":{"rounds":%d},"lineup":{"a":"x"},"seed":"1","deal":0}\n' % (i, i, rounds) for i in numbers
        ))  # fmt: skip
        seen = 0
        while seen < len(numbers):
            seen += len(worker.lines())


def speed(folder: str, codec: str, live: int, calls: int) -> tuple[float, float]:
    """Return calls per CPU second of the worker and per second."""
    worker = _Worker(folder, codec)
    rounds = max(1, calls // live)
    _begin(worker, live, rounds)
    wall, cpu = time.perf_counter(), worker.cpu()
    requests = [b'{"id":%d,"op":"replies","episode":"%d","strand":"","replies":[%b]}\n' % (i, i, _REPLY) for i in range(live)]
    total = left = live * rounds
    following = 0  # episodes are continued in turn
    in_flight = min(live, _FLIGHT)
    worker.send(b"".join(requests[:in_flight]))
    following, unsent = in_flight, total - in_flight
    while left:
        n = len(worker.lines())
        left -= n
        n = min(n, unsent)
        unsent -= n
        worker.send(b"".join([requests[(following + i) % live] for i in range(n)]))
        following += n
    cpu, wall = worker.cpu() - cpu, time.perf_counter() - wall
    worker.close()
    return total / cpu, total / wall


def memory(folder: str, codec: str, live: int) -> float:
    """Return the memory of a worker with live episodes in MB."""
    worker = _Worker(folder, codec)
    _begin(worker, live, 2)
    used = worker.memory()
    worker.close()
    return used


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m parley.bench", description="Measure the worker alone.")
    parser.add_argument("--live", type=int, default=2000, help="live episodes while calls are counted")
    parser.add_argument("--calls", type=int, default=200_000, help="calls to make")
    parser.add_argument("--episodes", type=int, default=10_000, help="live episodes while memory is measured")
    args = parser.parse_args()
    if not sys.platform.startswith("linux"):
        raise SystemExit("the benchmark reads /proc: run it on Linux")
    codecs = ["json"] + (["orjson"] if _json.name == "orjson" else [])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "bench_world.py"), "w") as f:
            f.write(_WORLD)
        print(f"python {platform.python_version()}, 1 KB out, 0.5 KB in, {args.live} live episodes")
        for codec in codecs:
            core, wall = speed(folder, codec, args.live, args.calls)
            print(f"{codec:7}{core:9,.0f} calls/s of a core{wall:9,.0f} calls/s here{memory(folder, codec, args.episodes):6.0f} MB with {args.episodes:,} live episodes")


if __name__ == "__main__":
    main()
