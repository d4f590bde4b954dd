"""A line that says how far work is: in a terminal, in a notebook without ipywidgets, or nowhere."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, cast


class Progress:
    """Shows one line that is replaced."""

    def __init__(self, show: bool) -> None:
        self._handle: Any = None
        self._last = 0.0
        self._wide = 0
        self._where = _place() if show else ""
        self.wanted = show

    def show(self, text: str, final: bool = False) -> None:
        """Replace the line, at most a few times a second."""
        now = time.monotonic()
        if not self._where or (now - self._last < 0.2 and not final):
            return
        self._last = now
        if self._where == "notebook":
            data = {"text/plain": text}
            if self._handle is None:
                self._handle = cast(Any, importlib.import_module("IPython.display")).display(data, raw=True, display_id=True)
            else:
                self._handle.update(data, raw=True)
            return
        sys.stderr.write("\r" + text.ljust(self._wide) + ("\n" if final else ""))
        sys.stderr.flush()
        self._wide = len(text)


def _place() -> str:
    """Return "notebook", "terminal" or ""."""
    shell = sys.modules.get("IPython")
    running = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    if running is not None and hasattr(running, "kernel"):
        return "notebook"
    return "terminal" if sys.stderr is not None and sys.stderr.isatty() else ""  # pyright: ignore[reportUnnecessaryComparison]
