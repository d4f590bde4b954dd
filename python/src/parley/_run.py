"""Plays a plan from a script or a notebook: ``parley.run(Auction, agents={…}, episodes=100)``. This process plays a world that is a class."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import os
import re
import secrets
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any, cast

from . import binary, guard
from ._json import record
from ._progress import Progress
from ._read import Report, Run, dollars, interval, table
from .errors import Error, Interrupted, Misuse
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
        failed = f", {episodes.get('failed', 0):,} failed" if episodes.get("failed") else ""
        return f"{self.summary.get('state', 'ended')}: {episodes.get('complete', 0):,} of {episodes.get('total', 0):,} episodes{failed}; {self._asked()}; {dollars(self.summary)}"

    def _asked(self) -> str:
        """Say how many calls the run has, and how many of them were made before."""
        calls: Mapping[str, int] = self.summary.get("calls") or {}
        acts: Mapping[str, int] = self.summary.get("acts") or {}
        earlier = calls.get("earlier", 0)
        text = f"{calls.get('total', 0):,} calls" + (f", {acts['total']:,} acts" if acts.get("total") else "")
        if earlier and not calls.get("asked") and not acts.get("asked"):
            return text + ", all of them before: nothing was asked"
        return text + (f", {earlier:,} of the calls before" if earlier else "")

    def __repr__(self) -> str:
        return f"<{self}; {self.path}: .report(), .data, .summary>"

    def _repr_html_(self) -> str:
        shown = table([("run", os.path.basename(self.path)), ("end", str(self)), ("page", ".report()")])
        scores: list[Mapping[str, Any]] = self.summary.get("agents") or []
        if scores:
            rows = [(s.get("agent", ""), s["score"], f"{s['mean']:.4g}", interval(s.get("interval")), f"{s['n']:,}") for s in scores[:_MOST_SCORES]]
            more = f"<p>and {len(scores) - _MOST_SCORES} more: .report() has all</p>" if len(scores) > _MOST_SCORES else ""
            shown += table(rows, ("agent", "score", "mean", "95% interval", "n")) + more
        return shown


_MOST_SCORES = 20  # in a cell of a notebook


def run(
    world: type[World] | str | os.PathLike[str],
    *,
    agents: Mapping[str, Any] | None = None,
    out: str | os.PathLike[str] | None = None,
    params: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    progress: bool = True,
    flags: Mapping[str, Any] | None = None,
    **plan: Any,
) -> Summary:
    """Play a world, a kind or a plan, and return how the run ended. If ``out`` exists, the run is resumed.

    A world is a class or ``"auction.py:Auction"``: this process plays it. A kind that comes with Parley is a name such as
    ``"secrets"``, and a plan is the path of its file. ``agents`` maps names to models, as ``{"small": "sim/small"}``, or to
    what a plan file says of an agent. Other keys are those of a plan file: lineup, plan, seed, budget, providers and so on.
    For a plan file, they replace its own, and ``out`` is beside it if it is not given. ``flags`` are flags of ``parley run``.

    Ctrl-C finishes the calls in flight and raises parley.Interrupted, whose ``run`` is what this function would return.
    """
    for name, given in (("agents", agents), ("params", params), ("flags", flags)):
        if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Misuse(f'parley.run: {name} is {given!r:.80}: want a dict such as {{"small": "sim/small"}}' if name == "agents" else f"parley.run: {name} is {given!r:.80}: want a dict")
    if fold.table is not None:
        raise Error("parley.run cannot be called by a world: call it from outside")
    content: dict[str, Any] = {**plan, "agents": {n: {"model": a} if isinstance(a, str) else a for n, a in (agents or {}).items()}, "params": params, "episodes": episodes}
    content = {name: value for name, value in content.items() if value is not None and (value or name in plan)}
    more: list[str] = []
    for name, value in (flags or {}).items():
        for one in cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value]:
            more.append(f"--{name.replace('_', '-')}={str(one).lower() if isinstance(one, bool) else one}")
    shown = Progress(progress)
    found = _found(world)
    if isinstance(found, _Plan):
        path = os.path.abspath(str(os.fspath(out)) if out is not None else os.path.splitext(found.path)[0] + ".parley")
        return _play(None, [binary.find(), "run", found.path, "--out", path, "--json", *_sets(content), *more], path, shown)
    if out is None:
        raise Misuse('parley.run: name the run file, such as out="run.parley"')
    path = os.path.abspath(str(os.fspath(out)))
    if isinstance(found, str):
        # The files that params name are beside the plan: here, beside the run file, where a resumed run looks for them too.
        handle, file = tempfile.mkstemp(prefix=".parley-", suffix=".yaml", dir=os.path.dirname(path))
        os.close(handle)
        try:
            return _play_content({"kind": found, **content}, file, None, path, more, shown)
        finally:
            os.unlink(file)
    if threading.current_thread() is not threading.main_thread():
        raise Error("parley.run plays the world in the main thread: call it from there")
    with tempfile.TemporaryDirectory() as folder, guard.guarding(found):
        return _play_content({"kind": f"python:{found.__name__}", **content}, os.path.join(folder, "plan.yaml"), found, path, more, shown)


def _play_content(content: Mapping[str, Any], file: str, world: type[World] | None, path: str, more: list[str], shown: Progress) -> Summary:
    """Write a plan file and play it."""
    with open(file, "wb") as f:
        f.write(b"{" + b",".join(b"%b:%b" % (record(k, "plan"), record(v, f"parley.run: {k}")) for k, v in content.items()) + b"}")
    try:
        return _play(world, [binary.find(), "run", file, "--out", path, "--json", *more], path, shown)
    except binary.ProgramError as e:
        raise binary.ProgramError(_without(str(e), file), e.code) from None


def _sets(content: Mapping[str, Any]) -> list[str]:
    """Return keys as flags that replace those of a plan file. Of agents and params, those that are not given stay."""
    out: list[str] = []
    for key, value in content.items():
        inner = value.items() if key in ("agents", "params") else [("", value)]
        out.extend(f"--set={key}{'.' + name if name else ''}={record(v, f'parley.run: {key}').decode()}" for name, v in inner)
    return out


def _without(text: str, file: str) -> str:
    """Return an error about the plan that run writes for an author who wrote arguments: without the file and its lines."""
    text = re.sub(r"\n +\d+ \| .*\n +\| *\^", "", text)
    return re.sub(re.escape(file) + r"(:\d+)*: ", "", text).replace(file, "PLAN")


def _trusting(command: str) -> str:
    """Return the flags of run that allow what a command line of the program does."""
    words = shlex.split(command)
    return record({"trust": [value for flag, value in itertools.pairwise(words) if flag == "--trust"]}, "parley.run").decode()


def _with_flags(text: str) -> str:
    """Return an error whose remedies are flags of the program with flags of run."""
    text = re.sub(r"parley run [^\n]* --trust [^\n]*", lambda m: f"add flags={_trusting(m[0])}", text)
    return re.sub(r"\nusage: .*", "", text, flags=re.DOTALL).replace("--changed-code", 'flags={"changed_code": True}')


@dataclasses.dataclass(frozen=True)
class _Plan:
    path: str


def _found(world: Any) -> type[World] | str | _Plan:
    """Return the class of a world that can be played, the name of a kind, or a plan file."""
    if isinstance(world, (str, os.PathLike)):
        text = os.fspath(cast("str | os.PathLike[str]", world))
        file, colon, name = text.rpartition(":")
        if colon and file.endswith(".py"):
            world = load(file, name)
        elif text.endswith(".py"):
            raise Misuse(f"{text!r} names no class: write {text + ':CLASS'!r}")
        elif re.search(r"[./\\]", text):
            return _Plan(text)
        else:
            return text
    if not isinstance(world, type) or not issubclass(world, World):
        raise Misuse(f"parley.run plays a class such as Auction(parley.World), a kind such as 'secrets', or a plan file, not {world!r:.80}")
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


def _play(world: type[World] | None, command: list[str], path: str, shown: Progress) -> Summary:
    """Run the program to its end. This process plays the world, if one is given."""
    errors: collections.deque[str] = collections.deque(maxlen=100)
    printed: list[bytes] = []
    with contextlib.ExitStack() as stack:
        interrupts = stack.enter_context(binary.Interrupts())
        link = _Link() if world is not None else None
        if link is not None:
            stack.callback(link.close)
        env = {"PARLEY_PROGRESS": "1", **({"PARLEY_BROUGHT": link.name} if link is not None else {"PARLEY_PYTHON": os.environ.get("PARLEY_PYTHON") or sys.executable})}
        process = binary.start(command, env, link.inherit if link is not None else ())
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
            sock = link.connected(process) if link is not None else None
            if sock is not None:
                with sock:
                    Session(sock, lambda _: cast("type[World]", world)).serve()
            code = process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
            for r in readers:
                r.join()
            binary.close(process)
    if code not in (0, 1, 3, 4) and not interrupts.came:
        raise binary.ProgramError(_with_flags(_last_error(list(errors))) or f"parley run ended with {code}", code)
    text = b"".join(printed).decode("utf-8", "replace").strip()
    done = Summary(path, code, json.loads(text) if text.startswith("{") else {})
    shown.show(str(done), final=True)
    if shown.wanted and done.failures:
        print(done.failures, file=sys.stderr)
    if interrupts.came:
        raise Interrupted(f"{done}. Call parley.run again to go on: the attribute run of this exception has what was played. In a notebook: sys.last_value.run", run=done)
    return done


def _last_error(lines: list[str]) -> str:
    """Return the last error of the program. Lines before it are progress."""
    begins = [i for i, line in enumerate(lines) if line.startswith("parley: ") and not line.startswith("parley: stopping")]
    return "\n".join(lines[begins[-1] if begins else -20 :])
