"""The errors of this package, and how an error of a world is shown to its author."""

from __future__ import annotations

import inspect
import os
import traceback
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Error(Exception):
    """Base of the errors that this package raises."""


class Invalid(Error):
    """A param that a world cannot be played with. The engine shows it at its line of the plan."""

    def __init__(self, param: str, text: str) -> None:
        super().__init__(f"{param}: {text}" if param else text)
        self.param = param
        self.text = text


class Impure(Error):
    """A world did something whose result is not recorded, such as reading the clock."""


class Misuse(Error):
    """A world used its table in a way that cannot work."""


class Failed(Error):
    """An act failed. ``kind`` says how: ``raised`` if its function raised, whose exception is in the text, or such as ``timeout``."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended parley.map or parley.run.

    ``answers`` are those of map in the order of the requests; those that were not asked have ``failed == "canceled"``. ``run``
    is what run would have returned.
    """

    def __init__(self, text: str, answers: list[Any] | None = None, run: Any = None) -> None:
        super().__init__(text)
        self.answers = answers or []
        self.run = run


class Stuck(BaseException):
    """A step took too long. It is no Exception, so that ``except Exception`` does not hide it."""


def is_own(filename: str) -> bool:
    """Report whether a file is a part of this package."""
    return filename.startswith(_PACKAGE)


def place(filename: str, line: int | None) -> str:
    """Return ``auction.py:12``, or ``cell:12`` for a cell of a notebook, whose file has a number as its name."""
    folder, name = os.path.split(filename)
    if os.path.basename(folder).startswith("ipykernel_"):
        name = "cell"
    name = name or "?"
    return f"{name}:{line}" if line else name


def line_of(function: Any) -> str:
    """Return ``auction.py:12: `` for a function, as the begin of an error; empty if it is not known."""
    code = getattr(inspect.unwrap(getattr(function, "__func__", function)), "__code__", None)
    return place(code.co_filename, code.co_firstlineno) + ": " if code is not None else ""


def _hint(error: BaseException) -> str:
    text = str(error)
    if isinstance(error, RuntimeError) and ("event loop" in text or "no current event loop" in text):
        return ". A world has no event loop: await only its table; use await t.do(...) for work outside"
    if isinstance(error, (TypeError, AttributeError)) and "'coroutine'" in text:
        return ". Is an await missing?"
    return ""


def _frames(error: BaseException) -> list[tuple[str, int]]:
    """List the lines of an error outside this package, outermost first."""
    found: list[tuple[str, int]] = []
    tb: TracebackType | None = error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if not is_own(name) and not name.startswith("<frozen"):
            found.append((name, tb.tb_lineno))
        tb = tb.tb_next
    return found


def is_foreign(filename: str) -> bool:
    """Report whether a file belongs to a library, not to the author of a world."""
    return f"{os.sep}site-packages{os.sep}" in filename or filename.startswith(os.path.dirname(os.__file__) + os.sep)


def has_line(error: BaseException) -> bool:
    """Report whether code of the author raised an error, or called what did."""
    return any(not is_foreign(name) for name, _ in _frames(error))


def describe(error: BaseException) -> dict[str, str]:
    """Return the error object of the protocol: what happened in which line, and the traceback."""
    frames = _frames(error)
    own = [f for f in frames if not is_foreign(f[0])] or frames
    where = place(*own[-1]) + ": " if own else ""
    text = str(error)
    if isinstance(error, SyntaxError) and error.filename:
        where, text = place(error.filename, error.lineno) + ": ", error.msg
    if isinstance(error, RecursionError):
        text = "the world calls itself too deeply: " + text
    name = type(error).__name__
    what = f"{where}{name}: {text}{_hint(error)}" if text else f"{where}{name}{_hint(error)}"
    return {"text": what, "trace": _trace(error)}


def _trace(error: BaseException) -> str:
    """Format a traceback without the lines of this package."""
    whole = traceback.TracebackException.from_exception(error, limit=-50)
    seen: Any = whole
    for _ in range(20):  # errors that led to this one
        if seen is None:
            break
        seen.stack = traceback.StackSummary.from_list([f for f in seen.stack if not is_own(f.filename)])
        seen = seen.__cause__ or seen.__context__
    return "".join(whole.format())


def scrub(text: str) -> str:
    """Replace what cannot be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
