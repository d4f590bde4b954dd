"""Refuses what would make a world depend on more than its replies, while a step of it runs.

``install`` replaces functions once. Each replacement looks at one number: the thread in which a step runs now. Other
threads, acts and code that runs while a module is imported are not affected.
"""

from __future__ import annotations

import _thread
import builtins
import contextlib
import datetime as _datetime
import functools
import io
import os
import random
import secrets
import socket
import subprocess
import sys
import threading
import time
import types
import uuid
from collections.abc import Callable, Generator
from typing import Any

from .errors import Impure, is_foreign, is_own

_CLOCK = "a world must play the same every time; get the time with await t.do(time.time)"
_CHANCE = "use t.rand, which draws the same on every play"
_FILE = "read files when the module is imported, or with await t.do(...), which records the result"
_OUTSIDE = "use await t.do(...), which runs a function outside of the world and records its result"
_THREAD = "use await t.fork(...) to do several things at once, or await t.do(...) for work outside"
_SETTING = "read the environment when the module is imported, or make it a param of the world"
_ENTROPY = "seed it with t.rand.uint64(), or use t.rand"

# What may call these functions during a step: an import, and what only writes messages.
_ALLOWED = {"importlib._bootstrap", "importlib._bootstrap_external", "linecache", "logging", "warnings", "traceback"}


class Fold:
    """The step that runs now. ``thread`` is the thread that is guarded, or 0; ``serial`` counts steps."""

    __slots__ = ("thread", "table", "serial")

    def __init__(self) -> None:
        self.thread = 0
        self.table: Any = None
        self.serial = 0


fold = Fold()


def _prints(frame: types.FrameType) -> bool:
    """Report whether a frame is a method of standard output: that of a notebook asks for more than a file does."""
    owner = frame.f_locals.get("self") if frame.f_code.co_argcount else None
    return owner is not None and (owner is sys.stdout or owner is sys.stderr)


def refuse(name: str, remedy: str) -> None:
    """Raise an Impure, unless the call is made by an import or to write a message."""
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_globals.get("__name__") in _ALLOWED or frame.f_code.co_filename.startswith("<frozen importlib") or _prints(frame):
            return
        if str(frame.f_globals.get("__name__")).startswith("asyncio."):
            name, remedy = "asyncio", "await only its table: t.ask, t.fork and t.do"
        if is_own(frame.f_code.co_filename) and frame.f_code.co_name == "resume":
            break
        frame = frame.f_back
    raise Impure(f"{name} is not allowed in a world: {remedy}")


def _guarded(original: Callable[..., Any], name: str, remedy: str, when: Callable[..., bool] | None = None) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        if fold.thread and fold.thread == threading.get_ident() and (when is None or when(*args, **kwargs)):
            refuse(name, remedy)
        return original(*args, **kwargs)

    call.__parley_guard__ = True  # type: ignore[attr-defined]
    return call


# Modules of Python through which a world reaches what they guard.
_THROUGH = {"os", "os.path", "posixpath", "ntpath", "genericpath", "pathlib", "pathlib._local", "_collections_abc", "collections.abc", __name__}


def _by_author(*_: Any, **__: Any) -> bool:
    """Report whether the code of the world itself calls: libraries look at files and variables for many reasons."""
    frame: types.FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__name__") in _THROUGH:
        frame = frame.f_back
    return frame is not None and not is_foreign(frame.f_code.co_filename) and not is_own(frame.f_code.co_filename)


def _no_second(*args: Any, **_: Any) -> bool:
    """Report whether strftime was called without a time."""
    return len(args) < 2


def _no_time(*args: Any, **_: Any) -> bool:
    """Report whether a function of time was called without a time: it takes the present one."""
    return not args or args[0] is None


def _unseeded(*args: Any, **kwargs: Any) -> bool:
    return next(iter((*args, *kwargs.values())), None) is None


def _no_seed(_self: Any, a: Any = None, *_args: Any, **_: Any) -> bool:
    return a is None


_RANDOM = (
    "random randint randrange choice choices shuffle sample uniform gauss normalvariate triangular betavariate expovariate gammavariate "
    "lognormvariate paretovariate vonmisesvariate weibullvariate getrandbits randbytes binomialvariate seed setstate"
)

# Owner, names, remedy. A name that a Python version lacks is skipped.
_TABLE: list[tuple[Any, str, str, str]] = [
    (time, "time", "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time clock_gettime", _CLOCK),
    (os, "os", "times", _CLOCK),
    (time, "time", "sleep", "a world does not wait; use await t.do(...) if something outside must be waited for"),
    (random, "random", _RANDOM, _CHANCE),
    (random.SystemRandom, "random.SystemRandom", "random getrandbits randbytes", _CHANCE),
    (os, "os", "urandom getrandom", _CHANCE),
    (uuid, "uuid", "uuid1 uuid4 uuid6 uuid7", "use uuid.UUID(int=t.rand.uint64())"),
    (secrets, "secrets", "token_bytes token_hex token_urlsafe choice randbelow randbits", _CHANCE),
    (socket.socket, "socket.socket", "__init__", _OUTSIDE),
    (socket, "socket", "create_connection getaddrinfo gethostbyname gethostname socketpair", _OUTSIDE),
    (builtins, "", "open input", _FILE),
    (io, "io", "open", _FILE),
    (os, "os", "open listdir scandir remove unlink rename replace mkdir rmdir", _FILE),
    (os, "os", "fork forkpty system popen posix_spawn posix_spawnp execv execve kill getpid getppid", _OUTSIDE),
    (subprocess.Popen, "subprocess.Popen", "__init__", _OUTSIDE),
    (threading.Thread, "threading.Thread", "start", _THREAD),
    (_thread, "_thread", "start_new_thread start_new start_joinable_thread", _THREAD),
]


_replaced: dict[int, tuple[Any, Any]] = {}  # the original and its replacement, by the id of the original


def _replace(owner: Any, prefix: str, names: str, remedy: str, when: Callable[..., bool] | None = None) -> None:
    for name in names.split():
        original = getattr(owner, name, None)
        if original is None or hasattr(original, "__parley_guard__"):
            continue
        shown = prefix if name.startswith("__") else f"{prefix}.{name}" if prefix else name
        made = _guarded(original, shown, remedy, when)
        _replaced[id(original)] = (original, made)
        setattr(owner, name, made)


def install() -> None:
    """Replace the functions."""
    for owner, prefix, names, remedy in _TABLE:
        _replace(owner, prefix, names, remedy)
    _replace(os.path, "os.path", "exists lexists isfile isdir islink getsize getmtime getatime getctime", _FILE, _by_author)
    _replace(os, "os", "stat lstat access getcwd readlink", _FILE, _by_author)
    _replace(type(os.environ), "os.environ", "__getitem__ __iter__ __len__", _SETTING, _by_author)
    _replace(time, "time", "localtime gmtime ctime asctime", _CLOCK, _no_time)
    _replace(time, "time", "strftime", _CLOCK, _no_second)
    if not hasattr(random.Random.seed, "__parley_guard__"):
        random.Random.seed = _guarded(random.Random.seed, "random.Random without a seed", _ENTROPY, _no_seed)  # type: ignore[method-assign]
    if not hasattr(builtins.__import__, "__parley_guard__"):
        builtins.__import__ = _importing(builtins.__import__)
    if not _dates:
        _dates.update(_guarded_dates())


def _guarded_dates() -> dict[Any, Any]:
    """Return subclasses of datetime and date whose now and today are guarded, by what they stand for."""
    made: dict[Any, Any] = {}
    for real in (_datetime.datetime, _datetime.date):

        class Meta(type):
            def __instancecheck__(cls, instance: Any, _real: type = real) -> bool:
                return isinstance(instance, _real)

            def __subclasscheck__(cls, subclass: type, _real: type = real) -> bool:
                return issubclass(subclass, _real)

        space: dict[str, Any] = {"__module__": "datetime", "__doc__": real.__doc__, "__slots__": ()}
        for name in ("now", "today", "utcnow"):
            if hasattr(real, name):
                space[name] = _class_method(real, name)
        made[real] = Meta(real.__name__, (real,), space)
    module = types.ModuleType("datetime", _datetime.__doc__)
    module.__dict__.update(vars(_datetime))
    module.__dict__.update({c.__name__: c for c in made.values()})
    made[_datetime] = module
    return made


_dates: dict[Any, Any] = {}


def _importing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return __import__ for a world that imports during a step: it guards numpy and sqlite3, and gives the author's code the guarded datetime."""

    @functools.wraps(original)
    def call(name: str, globals: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        made = original(name, globals, *args, **kwargs)
        if not fold.thread or fold.thread != threading.get_ident():
            return made
        _install_imported()
        if made is _datetime and not is_foreign(str((globals or {}).get("__file__"))):
            return _dates[_datetime]
        return made

    call.__parley_guard__ = True  # type: ignore[attr-defined]
    return call


def _on_disk(database: Any, *_: Any, **__: Any) -> bool:
    """Report whether a database of sqlite3 is not only in memory."""
    return database != ":memory:"


def _install_imported() -> None:
    """Guard what may be imported or not: sqlite3, and the global chance of numpy."""
    for name in ("sqlite3", "sqlite3.dbapi2"):
        database = sys.modules.get(name)
        if database is not None:
            _replace(database, "sqlite3", "connect", _OUTSIDE, _on_disk)
    chance = sys.modules.get("numpy.random")
    if chance is None or hasattr(getattr(chance, "default_rng", None), "__parley_guard__") or getattr(chance.__spec__, "_initializing", False):
        return  # it is not imported, guarded, or not imported to its end
    seeded = "use numpy.random.default_rng(t.rand.uint64()), which draws the same on every play"
    known: Any = getattr(chance, "RandomState", None)
    _replace(chance, "numpy.random", " ".join(n for n in dir(known) if not n.startswith("_")), seeded)
    _replace(chance, "numpy.random", "default_rng", seeded, _unseeded)
    bits: Any = sys.modules.get("numpy.random.bit_generator")
    if hasattr(getattr(bits, "randbits", None), "__parley_guard__"):
        bits.randbits = bits.randbits.__wrapped__  # RandomState draws from it also if it has a seed


def rebind(module: types.ModuleType) -> None:
    """Guard the functions that a module imported by name before they were replaced."""
    _install_imported()
    for name, value in list(vars(module).items()):
        original, made = _replaced.get(id(value), (None, None))
        if original is not None and original is value:
            setattr(module, name, made)


def _below(file: Any, folder: str) -> bool:
    """Report whether a file is the author's, in a folder or below it: a virtual environment may be there too."""
    path = os.path.abspath(file) if isinstance(file, str) else ""
    return path.startswith(os.path.join(folder, "")) and not is_foreign(path) and not is_own(path)


def watch(folder: str, *more: types.ModuleType) -> Callable[[], None]:
    """Guard the modules of a folder, those of packages in it, and others; but not installed libraries. Returns a function that gives them back the datetime and date that they had.

    These classes cannot be changed for all modules: extensions rely on them.
    """
    changed: list[tuple[types.ModuleType, str, Any]] = []
    for module in [*more, *list(sys.modules.values())]:
        if module not in more and not _below(getattr(module, "__file__", None), folder):
            continue
        rebind(module)
        for name, value in list(vars(module).items()):
            if isinstance(value, (type, types.ModuleType)) and value in _dates:
                setattr(module, name, _dates[value])
                changed.append((module, name, value))

    def restore() -> None:
        for module, name, value in changed:
            if getattr(module, name, None) is _dates[value]:
                setattr(module, name, value)

    return restore


@contextlib.contextmanager
def guarding(cls: type) -> Generator[None, None, None]:
    """Guard a class that this process plays beside other work: its module, and those in the same folder or below it."""
    install()
    module = sys.modules[cls.__module__]
    file = getattr(module, "__file__", None)
    restore = watch(os.path.dirname(os.path.abspath(file)) if file else os.getcwd(), module)
    try:
        yield
    finally:
        restore()


def _class_method(real: type, name: str) -> Any:
    inner: Any = next(c.__dict__[name] for c in real.__mro__ if name in c.__dict__)

    def call(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if fold.thread and fold.thread == threading.get_ident():
            refuse(f"datetime.{real.__name__}.{name}", _CLOCK)
        return inner.__get__(None, cls)(*args, **kwargs)

    return classmethod(call)
