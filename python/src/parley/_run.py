"""Plays a plan from a script or a notebook: ``parley.run(Auction, agents={…}, episodes=100)``. This process plays the world."""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from . import binary, guard
from ._json import record
from ._progress import Progress
from ._read import Report, Run
from .errors import Error, Misuse
from .guard import fold
from .worker import Session, check, load
from .world import World


@dataclasses.dataclass(frozen=True, repr=False)
class Summary:
    """How a run ended. ``code`` is the exit code: 1 if an episode failed, 3 if the budget ended it, 4 if it was interrupted."""

    path: str
    code: int
    summary: Mapping[str, Any]

    @property
    def data(self) -> Run:
        """The run, to read."""
        return Run([self.path])

    def report(self, *by: str) -> Report:
        """Return the report of the run."""
        return self.data.report(*by)

    @property
    def failures(self) -> str:
        """Why episodes failed: the most frequent reason with its traceback, and how many other reasons there are. Empty: none failed."""
        fault: Mapping[str, Any] = self.summary.get("fault") or {}
        if not fault:
            return ""
        others = f"\n{fault['others']} other reason{'s' if fault['others'] > 1 else ''}: .data.episodes() has all of them" if fault.get("others") else ""
        why = fault.get("trace") or fault.get("why", "")
        return f"failed most often ({fault.get('episodes', 0):,} of {self.summary['episodes']['failed']:,} that failed):\n{why.rstrip()}{others}"

    def __str__(self) -> str:
        episodes: Mapping[str, int] = self.summary.get("episodes") or {}
        made, asked = episodes.get("complete", 0), self.summary.get("calls", {}).get("total", 0)
        acts = self.summary.get("acts", {}).get("total", 0)
        outside = f", {acts:,} acts" if acts else ""
        cost = f"{self.summary.get('cost_usd') or 0:,.6f}".rstrip("0").rstrip(".")
        failed = f", {episodes.get('failed', 0):,} failed" if episodes.get("failed") else ""
        return f"{self.summary.get('state', 'ended')}: {made:,} of {episodes.get('total', 0):,} episodes{failed}; {asked:,} calls{outside}; ${cost}"

    def __repr__(self) -> str:
        return f"<{self}; {self.path}: .report(), .data, .summary>"

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()  # pyright: ignore[reportPrivateUsage]


def run(
    world: type[World] | str,
    *,
    agents: Mapping[str, Any],
    out: str | os.PathLike[str],
    params: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    progress: bool = True,
    flags: Mapping[str, Any] | None = None,
    **plan: Any,
) -> Summary:
    """Play a world, given as a class or as ``"auction.py:Auction"``, and return how the run ended. If ``out`` exists, the run is resumed.

    ``agents`` maps names to models, as ``{"small": "sim/small"}``, or to what a plan file says of an agent. Other keys are
    those of a plan file: lineup, plan, seed, budget, providers and so on. ``flags`` are flags of ``parley run``.
    """
    world = _class(world)
    if threading.current_thread() is not threading.main_thread():
        raise Error("parley.run plays the world in the main thread: call it from there")
    if fold.table is not None:
        raise Error("parley.run cannot be called by a world: call it from outside")
    made = {n: {"model": a} if isinstance(a, str) else a for n, a in agents.items()}
    content: dict[str, Any] = {"kind": f"python:{world.__name__}", "agents": made, **plan}
    if "lineup" not in plan and "plan" not in plan and len(made) == 1:
        content["lineup"] = dict.fromkeys(world(**params or {}).seats(), next(iter(made)))
    if params:
        content["params"] = params
    if episodes is not None:
        content["episodes"] = episodes
    path = os.path.abspath(str(os.fspath(out)))
    with tempfile.TemporaryDirectory() as folder, guard.guarding(world):
        file = os.path.join(folder, "plan.yaml")
        with open(file, "wb") as f:
            f.write(b"{" + b",".join(b"%b:%b" % (record(k, "plan"), record(v, f"parley.run: {k}")) for k, v in content.items()) + b"}")
        more = [f"--{n.replace('_', '-')}={str(v).lower() if isinstance(v, bool) else v}" for n, v in (flags or {}).items()]
        try:
            return _play(world, [binary.find(), "run", file, "--out", path, "--json", *more], path, Progress(progress))
        except binary.ProgramError as e:
            raise binary.ProgramError(_named(str(e), file), e.code) from None


def _named(text: str, file: str) -> str:
    """Return an error about the plan that run writes for an author who wrote arguments: without the file, its lines and flags."""
    text = re.sub(r"\n +\d+ \| .*\n +\| *\^", "", text)
    text = re.sub(re.escape(file) + r"(:\d+)*: ", "", text).replace(file, "PLAN")
    return text.replace("--changed-code", 'flags={"changed_code": True}')


def _class(world: Any) -> type[World]:
    """Return the class of a world that can be played."""
    if isinstance(world, str):
        file, colon, name = world.rpartition(":")
        if not colon:
            raise Misuse(f"{world!r} names no class: write {world + ':CLASS' if world.endswith('.py') else 'FILE.py:CLASS'!r}")
        world = load(file, name)
    if not isinstance(world, type) or not issubclass(world, World):
        raise Misuse(f"parley.run plays a class such as Auction(parley.World), not {world!r:.80}")
    check(world)
    return world


class _Link:
    """The connection to the program: a pair of sockets, or a port of this machine where a socket cannot be inherited."""

    def __init__(self) -> None:
        self.loopback = sys.platform == "win32" or "PARLEY_LOOPBACK" in os.environ
        self.inherit: list[int] = []
        self._token = secrets.token_urlsafe(32)
        if self.loopback:
            self._ours = socket.socket()
            if sys.platform == "win32":
                self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            self._ours.bind(("127.0.0.1", 0))
            self._ours.listen()
            self.name = f"tcp:127.0.0.1:{self._ours.getsockname()[1]}:{self._token}"
        else:
            self._ours, self._theirs = socket.socketpair()
            self.inherit = [self._theirs.fileno()]
            self.name = f"fd:{self._theirs.fileno()}"

    def connected(self, process: subprocess.Popen[bytes]) -> socket.socket | None:
        """Return the connection once the program has it, or None if it ended before."""
        if not self.loopback:
            self._theirs.close()
            return self._ours
        self._ours.settimeout(0.1)
        while process.poll() is None:
            try:
                made = self._ours.accept()[0]
            except TimeoutError:
                continue
            if self._shows(made):
                self._ours.close()
                return made
            made.close()  # another program of this machine
        return None

    def _shows(self, made: socket.socket) -> bool:
        """Report whether a connection begins with the token."""
        want, got = self._token.encode() + b"\n", b""
        made.settimeout(5)
        try:
            while len(got) < len(want):
                data = made.recv(len(want) - len(got))
                if not data:
                    return False
                got += data
        except OSError:
            return False
        made.settimeout(None)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return secrets.compare_digest(got, want)

    def close(self) -> None:
        self._ours.close()
        if not self.loopback:
            self._theirs.close()


def _play(world: type[World], command: list[str], path: str, shown: Progress) -> Summary:
    errors: collections.deque[str] = collections.deque(maxlen=100)
    printed: list[bytes] = []
    with binary.Interrupts() as interrupts:
        link = _Link()
        try:
            process = binary.start(command, {"PARLEY_BROUGHT": link.name, "PARLEY_PROGRESS": "1"}, link.inherit)
        except BaseException:
            link.close()
            raise
        interrupts.pass_to(process)
        assert process.stdout is not None and process.stderr is not None
        out, err = process.stdout, process.stderr

        def follow() -> None:
            for line in err:
                text = line.decode("utf-8", "replace").rstrip()
                errors.append(text)
                shown.show(text)

        readers = [threading.Thread(target=follow, daemon=True), threading.Thread(target=lambda: printed.append(out.read()), daemon=True)]
        for r in readers:
            r.start()
        try:
            sock = link.connected(process)
            if sock is not None:
                with sock:
                    Session(sock, lambda _: world).serve()
            code = process.wait()
        finally:
            link.close()
            if process.poll() is None:
                process.terminate()
                process.wait()
            for r in readers:
                r.join()
            binary.close(process)
    if code not in (0, 1, 3, 4):
        raise binary.ProgramError(_last_error(list(errors)) or f"parley run ended with {code}", code)
    text = b"".join(printed).decode("utf-8", "replace").strip()
    done = Summary(path, code, json.loads(text) if text.startswith("{") else {})
    shown.show(str(done), final=True)
    if shown.wanted and done.failures:
        print(done.failures, file=sys.stderr)
    return done


def _last_error(lines: list[str]) -> str:
    """Return the last error of the program. Lines before it are progress."""
    begins = [i for i, line in enumerate(lines) if line.startswith("parley: ") and not line.startswith("parley: stopping")]
    return "\n".join(lines[begins[-1] if begins else -20 :])
