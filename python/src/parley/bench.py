"""Measures the package: ``python -m parley.bench``. It prints a table.

``worker``: a driver process sends replies of 0.5 KB as fast as the worker answers with calls of 1 KB, for many live
episodes at once. ``memory``: a worker with live episodes. ``run``: a plan from end to end, all of it recorded, with the
simulated provider. ``read``: the calls of a large run file.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time

from . import _json, binary

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


def end_to_end(folder: str, episodes: int) -> tuple[int, float, float]:
    """Run a plan that names a world in Python, and return the calls, seconds, and CPU seconds of all processes."""
    plan = {"kind": "bench_world.py:Bench", "seed": 1, "episodes": episodes, "agents": {"x": {"model": "sim/small"}}, "lineup": {"a": "x"}}
    file = os.path.join(folder, "bench.yaml")
    with open(file, "w") as f:
        json.dump(plan, f)
    env = {**os.environ, "PARLEY_PYTHON": sys.executable}
    command = [binary.find(), "run", file, "--json", "--trust", "code=" + os.path.join(folder, "bench_world.py"), "--out", os.path.join(folder, "bench.parley")]
    wall, cpu = time.perf_counter(), _children()
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.stderr.decode("utf-8", "replace"))
    return int(json.loads(done.stdout)["calls"]["total"]), time.perf_counter() - wall, _children() - cpu


def _children() -> float:
    """Return the CPU seconds of the processes that were started here and have ended."""
    import resource

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def write_run(path: str, calls: int) -> None:
    """Write a run file with about that many calls, six in each episode."""
    with tempfile.TemporaryDirectory() as folder:
        plan = {"kind": "secrets", "seed": 1, "episodes": -(-calls // 6), "agents": {"x": {"model": "sim/small"}, "y": {"model": "sim/large"}}}
        file = os.path.join(folder, "bench.yaml")
        with open(file, "w") as f:
            json.dump({**plan, "lineup": {"first": "x", "second": "y"}}, f)
        binary.run(["run", file, "--out", path, "--quiet"])


_READ = "import sys, parley, time; rows = parley.open(sys.argv[1]).calls(*sys.argv[3:]); t = time.perf_counter(); print(len(getattr(rows, sys.argv[2])()), time.perf_counter() - t)"


def read(path: str, library: str, *columns: str) -> tuple[int, float, float]:
    """Read the calls of a run in a process of its own. Returns the rows, the seconds, and CPU seconds of all processes."""
    cpu = _children()
    done = subprocess.run([sys.executable, "-c", _READ, path, library, *columns], stdout=subprocess.PIPE, check=True)
    rows, wall = done.stdout.split()
    return int(rows), float(wall), _children() - cpu


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _row(what: str, wanted: str, measured: str) -> None:
    print(f"| {what} | {wanted} | {measured} |", flush=True)


def _worker_rows(folder: str, args: argparse.Namespace) -> None:
    for codec, wanted in (("json", 15_000), ("orjson", 50_000)):
        if codec == "orjson" and _json.name != "orjson":
            _row("worker alone, orjson", f"at least {wanted:,}", "orjson is not installed")
            continue
        core, wall = speed(folder, codec, args.live, args.calls)
        _row(f"worker alone, {codec}: calls/s of a core", f"at least {wanted:,}", f"{core:,.0f}; {wall:,.0f} calls/s here")


def _memory_rows(folder: str, args: argparse.Namespace) -> None:
    for codec in ["json", "orjson"] if _json.name == "orjson" else ["json"]:
        _row(f"memory of a worker with {args.episodes:,} live episodes, {codec}", "under 100 MB", f"{memory(folder, codec, args.episodes):.0f} MB")


def _run_rows(folder: str, args: argparse.Namespace) -> None:
    made, wall, cpu = end_to_end(folder, max(1, args.recorded // 10))
    cores = len(os.sched_getaffinity(0))
    _row(f"end to end, recorded, {_json.name}: calls/s on {cores} cores", "at least 5,000 on two", f"{made / wall:,.0f}; {cpu / made * 1e6:.0f} µs of CPU a call: {2 * made / cpu:,.0f} on two idle cores")


def _read_rows(folder: str, args: argparse.Namespace) -> None:
    path = args.run or os.path.join(folder, "read.parley")
    if not os.path.exists(path):
        write_run(path, args.rows)
    for library, module in (("arrow", "pyarrow"), ("polars", "polars"), ("pandas", "pandas")):
        if not _has(module) or (module == "pandas" and not _has("pyarrow")):
            _row(f"calls().{library}()", "under 15 s", f"{module} is not installed")
            continue
        for columns in ((), ("episode", "seat", "label", "text", "dollars")):
            rows, wall, cpu = read(path, library, *columns)
            few = f"{len(columns)} columns" if columns else "all columns"
            _row(f"{rows:,} calls as {library}, {few}", "under 15 s", f"{wall:.1f} s, {cpu:.1f} s of CPU")


_PARTS = {"worker": _worker_rows, "memory": _memory_rows, "run": _run_rows, "read": _read_rows}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m parley.bench", description="Measure the Python package, all of it or some parts.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(_PARTS)}; default: all")
    parser.add_argument("--live", type=int, default=2000, help="live episodes while calls of the worker are counted")
    parser.add_argument("--calls", type=int, default=200_000, help="calls of the worker")
    parser.add_argument("--episodes", type=int, default=10_000, help="live episodes while memory is measured")
    parser.add_argument("--recorded", type=int, default=100_000, help="calls from end to end")
    parser.add_argument("--rows", type=int, default=1_000_000, help="calls of the run file that is read")
    parser.add_argument("--run", help="the run file to read; it is written if it does not exist, and kept")
    args = parser.parse_args()
    unknown = [p for p in args.parts if p not in _PARTS]
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}; want some of {', '.join(_PARTS)}")
    if not sys.platform.startswith("linux"):
        raise SystemExit("the benchmark reads /proc: run it on Linux")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "bench_world.py"), "w") as f:
            f.write(_WORLD)
        print(f"Measured with Python {platform.python_version()}; the worker's calls have 1 KB, their replies 0.5 KB; {args.live:,} live episodes.\n")
        print("| what | wanted | measured |\n|---|---|---|")
        for name in args.parts or _PARTS:
            _PARTS[name](folder, args)


if __name__ == "__main__":
    main()
