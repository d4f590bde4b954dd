"""Finds and runs the program parley, which the wheel brings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import Error


class ProgramError(Error):
    """The program ended with an error. ``code`` is its exit code: docs/reference/exit-codes.md lists them.

    ``answers`` are those that parley.map got before, in the order of the requests.
    """

    def __init__(self, text: str, code: int, answers: Sequence[Any] = ()) -> None:
        super().__init__(text)
        self.code = code
        self.answers = list(answers)


def find() -> str:
    """Return the path of the program: that of PARLEY_BINARY, beside the interpreter, among the scripts of pip, or in PATH."""
    named = os.environ.get("PARLEY_BINARY")
    if named:
        found = shutil.which(named)
        if found is None:
            raise Error(f"PARLEY_BINARY is {named!r}: no such program")
        return found
    name = "parley.exe" if sys.platform == "win32" else "parley"
    user = f"{os.name}_user"
    folders = [os.path.dirname(sys.executable), sysconfig.get_path("scripts")]
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme=user))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which(name)
    if found is None:
        raise Error("the program parley was not found: install the wheel of parley-llm, or name the program in PARLEY_BINARY")
    return found


def run(args: Sequence[str], allowed: Sequence[int] = (0,)) -> subprocess.CompletedProcess[bytes]:
    """Run the program to its end and return what it printed. Another exit code than those allowed is a ProgramError."""
    done = subprocess.run([find(), *args], capture_output=True, check=False)
    if done.returncode not in allowed:
        text = done.stderr.decode("utf-8", "replace").strip() or f"parley {args[0]} ended with {done.returncode}"
        raise ProgramError(text, done.returncode)
    return done


def start(command: Sequence[str], env: Mapping[str, str] | None = None, inherit: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start the program with pipes. It stops when this process ends. Ctrl-C does not reach it: see interrupt."""
    pipe = subprocess.PIPE
    every: dict[str, str] = {**os.environ, "PARLEY_OWNED": "1", **(env or {})}
    if sys.platform == "win32":
        return subprocess.Popen(command, env=every, stdin=pipe, stdout=pipe, stderr=pipe, creationflags=subprocess.CREATE_NEW_PROCESS_GROUP)
    return subprocess.Popen(command, env=every, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=inherit, start_new_session=True)


def interrupt(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the program as Ctrl-C does: the first time it finishes the calls in flight, the second time it stops at once."""
    if process.stdin is not None and not process.stdin.closed:
        process.stdin.close()
    elif sys.platform == "win32":
        process.terminate()
    else:
        process.send_signal(signal.SIGINT)


class Interrupts:
    """Passes Ctrl-C on to a program, instead of a KeyboardInterrupt at any line. Only the main thread gets Ctrl-C, if it is not ignored."""

    def __init__(self) -> None:
        self.came = False
        self._process: subprocess.Popen[bytes] | None = None
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._pass_on)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def pass_to(self, process: subprocess.Popen[bytes]) -> None:
        """Name the program. An interrupt that came before is passed on now."""
        self._process = process
        if self.came:
            interrupt(process)

    def _pass_on(self, *_: object) -> None:
        self.came = True
        if self._process is not None:
            interrupt(self._process)


def close(process: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a program that has ended."""
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
