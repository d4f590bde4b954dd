"""Plays a plan from a script or a notebook: ``parley.run(Auction, agents={…}, episodes=100)``. This process plays the world."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import Any

from . import binary, guard
from ._progress import Progress
from ._read import Report, Run
from .errors import Error
from .worker import Session, check
from .world import World


@dataclasses.dataclass(frozen=True)
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

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()  # pyright: ignore[reportPrivateUsage]


def run(
    world: type[World],
    *,
    agents: Mapping[str, Any],
    out: str | os.PathLike[str],
    params: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    progress: bool = True,
    flags: Mapping[str, Any] | None = None,
    **plan: Any,
) -> Summary:
    """Play a world and return how the run ended. If the run file ``out`` exists, the run is resumed.

    ``agents`` maps names to models, as ``{"small": "sim/small"}``, or to what a plan file says of an agent. Other keys are
    those of a plan file: lineup, plan, seed, budget, providers and so on. ``flags`` are flags of ``parley run``.
    """
    check(world)
    if not hasattr(socket, "socketpair") or sys.platform == "win32":
        raise Error("parley.run needs a Unix system: write the world into a file and use parley run PLAN")
    if threading.current_thread() is not threading.main_thread():
        raise Error("parley.run plays the world in the main thread: call it from there")
    made = {n: {"model": a} if isinstance(a, str) else a for n, a in agents.items()}
    content: dict[str, Any] = {"kind": f"python:{world.__name__}", "agents": made, **plan}
    if "lineup" not in plan and "plan" not in plan and len(made) == 1:
        content["lineup"] = dict.fromkeys(world(**params or {}).seats(), next(iter(made)))
    if params:
        content["params"] = params
    if episodes is not None:
        content["episodes"] = episodes
    path = os.path.abspath(str(os.fspath(out)))
    guard.install()
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "plan.yaml")
        with open(file, "w", encoding="utf-8") as f:
            json.dump(content, f, ensure_ascii=False, allow_nan=False)
        ours, theirs = socket.socketpair()
        more = [f"--{n.replace('_', '-')}={v}" for n, v in (flags or {}).items()]
        command = [binary.find(), "run", file, "--out", path, "--json", f"--worker-fd={theirs.fileno()}", *more]
        return _play(world, command, ours, theirs, path, progress)


def _play(world: type[World], command: list[str], ours: socket.socket, theirs: socket.socket, path: str, progress: bool) -> Summary:
    shown = Progress(progress)
    errors: list[str] = []
    process = subprocess.Popen(
        command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    theirs.close()
    assert process.stdout is not None and process.stderr is not None
    out, err = process.stdout, process.stderr
    printed: list[bytes] = []

    def follow() -> None:
        for line in err:
            text = line.decode("utf-8", "replace").rstrip()
            errors.append(text)
            shown.show(text)

    readers = [threading.Thread(target=follow, daemon=True), threading.Thread(target=lambda: printed.append(out.read()), daemon=True)]
    for r in readers:
        r.start()

    def interrupt(*_: Any) -> None:
        process.send_signal(signal.SIGINT)  # the first drains, the second aborts

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        Session(ours, lambda _: world).serve()
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        ours.close()
        if process.poll() is None:
            process.terminate()
            process.wait()
        for r in readers:
            r.join()
        out.close()
        err.close()
    if code not in (0, 1, 3, 4):
        raise binary.ProgramError("\n".join(errors[-20:]) or f"parley run ended with {code}", code)
    text = b"".join(printed).decode("utf-8", "replace").strip()
    return Summary(path, code, json.loads(text) if text.startswith("{") else {})
