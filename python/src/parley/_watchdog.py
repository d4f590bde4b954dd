"""Ends steps that take too long, and says where they are, where the system and the thread allow it."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from types import CodeType, FrameType
from typing import Any

from .errors import Stuck, is_foreign, is_own, place
from .guard import fold

_TICKS = 20  # how often a step is looked at within its limit


class Watchdog:
    """Looks at the running step several times within its limit, and ends it after that.

    What other steps did does not matter: which episodes fail must not depend on which of them share a worker.
    """

    def __init__(self) -> None:
        self._limit = 0.0
        self._remedy = ""
        self._dumps = False
        self._seen = (0, 0)  # the step that runs, and for how many ticks
        self._warned: set[CodeType | None] = set()
        self._before: Any = None  # the handler of SIGALRM

    def start(self, limit: float, remedy: str, own_process: bool) -> None:
        """Begin to look at steps. remedy is what to do instead of a long step. If the process is not its own, it prints where a step
        is that nothing interrupts; a worker is asked by the engine."""
        self._limit, self._remedy, self._dumps = limit, remedy, not own_process
        if limit > 0 and hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGALRM, self._tick)
            signal.setitimer(signal.ITIMER_REAL, limit / _TICKS, limit / _TICKS)

    def stop(self) -> None:
        """Look at steps no more."""
        if self._before is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
            if self._dumps:
                faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, self._before)
            self._before = None

    def _tick(self, _: int, frame: FrameType | None) -> None:
        serial, ticks = self._seen
        if self._dumps and sys.__stderr__ is not None:
            faulthandler.dump_traceback_later(2 * self._limit, file=sys.__stderr__)
        if fold.table is None or serial != fold.serial:
            self._seen = (fold.serial, 1 if fold.table is not None else 0)
            return
        ticks += 1
        self._seen = (serial, ticks)
        code, where = _own(frame)
        if ticks > _TICKS:  # the first tick comes at any moment of the step, so that the whole limit has passed with one more
            self._seen = (serial, 0)
            raise Stuck(f"the step takes longer than {self._limit:g} seconds: is it a loop without an end?{self._remedy}")
        if ticks > 2 and code not in self._warned:
            self._warned.add(code)
            took = f"{(ticks - 1) * self._limit / _TICKS:.3g} seconds"
            print(f"parley: {where}: a step has run for {took}; it is ended after {self._limit:g}", file=sys.stderr, flush=True)


def _own(frame: FrameType | None) -> tuple[CodeType | None, str]:
    """Return the innermost function of the author that runs, and its line."""
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_own(name) and not is_foreign(name):
            return frame.f_code, place(name, frame.f_lineno)
        if is_own(name) and frame.f_code.co_name in ("resume", "answer"):
            break  # what called the step
        frame = frame.f_back
    return None, "?"
