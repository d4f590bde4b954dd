"""The worker process: ``python -m parley.worker`` plays worlds for the engine. docs/reference/worker-protocol.md describes the messages."""

from __future__ import annotations

import concurrent.futures
import difflib
import faulthandler
import gc
import importlib.util
import inspect
import os
import platform
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from . import _json, acts, env, guard, params, scorer
from ._sources import sources
from .episode import Episode, error_step
from ._watchdog import Watchdog
from .errors import Error, Invalid, Misuse, describe, place
from .values import Measure
from .world import World

PROTOCOL = 1
_CHUNK = 1 << 18
_LONGEST = 64 << 20  # bytes of a line
_WEIGH = 5  # episodes between two looks at the memory in use: a world may leak much in each

Class = type[World] | type[env.Env]
Loader = Callable[[Mapping[str, Any]], Class]
_ROLES: dict[str, tuple[type, str, str]] = {"": (World, "a world", "parley.World"), "environment": (env.Env, "an environment", "parley.Env"), "scorer": (scorer.Scorer, "a scorer", "parley.Scorer")}


def check(cls: type[World]) -> None:
    """Refuse a class that cannot be played, with a sentence that says what to change."""
    name = cls.__name__
    if inspect.isasyncgenfunction(cls.play):
        raise Misuse(f"{name}.play has a yield: use await t.ask(...) instead")
    if not inspect.iscoroutinefunction(cls.play):
        raise Misuse(f"{name}.play must be async: write async def play(self, t)")
    if cls.play is World.play or cls.seats is World.seats:
        raise Misuse(f"{name} has no method {'play' if cls.play is World.play else 'seats'}")
    if isinstance(cls.version, bool) or not isinstance(cls.version, int) or cls.version < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f"{name}.version is {cls.version!r}: want a whole number from 1")
    check_settings(cls)


def check_settings(cls: Class) -> None:
    """Refuse settings that worlds and environments share."""
    name, limit = cls.__name__, cls.step_limit
    if cls.durable not in ("turn", "episode"):
        raise Misuse(f'{name}.durable is {cls.durable!r}: want "turn" or "episode"')
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit <= 86_400):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f"{name}.step_limit is {limit!r}: want a number of seconds above 0, at most a day")


def description(cls: Class) -> dict[str, Any]:
    """Describe a class for the engine."""
    base: Any = World
    more: dict[str, Any] = {}
    if issubclass(cls, World):
        check(cls)
        if issubclass(cls, scorer.Scorer):
            scorer.check(cls)
            more["judges"] = dict(cls.judges)
    else:
        env.check(cls)
        check_settings(cls)
        base = env.Env
    doc = (inspect.getdoc(cls) if cls.__doc__ else "") or ""
    return {
        "parley": PROTOCOL,
        "language": f"python {platform.python_version()}",
        "version": getattr(cls, "version", 1),
        "files": sources(cls),
        "doc": doc.strip().split("\n")[0],
        "durable": cls.durable,
        "params": [f.describe() for f in params.cached_fields(cls, base).values()],
        "stand_in": cls.stand_in.__func__ is not base.stand_in.__func__,  # type: ignore[attr-defined]
        **more,
    }


def load(file: str, name: str, role: str = "") -> Class:
    """Import a file and return a class of it."""
    base, what, write = _ROLES[role]
    if not os.path.isfile(file):
        raise Misuse(f"{file}: no such file")
    folder, stem = os.path.split(os.path.abspath(file))
    stem = os.path.splitext(stem)[0]
    if folder not in sys.path:
        sys.path.append(folder)  # last: a neighbour must not take the place of a module of Python
    module_name = stem if stem not in sys.modules else f"parley_world_{stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise Misuse(f"{place(file, None)}: the name of a Python file must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    if isinstance(found, type) and issubclass(found, base) and found is not base:
        if role == "" and issubclass(found, scorer.Scorer):
            raise Misuse(f"{place(file, None)}: {name} is a scorer: use parley score RUN --with {place(file, None)}:{name}")
        return cast(Class, found)
    all_ = [n for n, c in vars(module).items() if isinstance(c, type) and issubclass(c, base) and c is not base]
    if found is not None:
        raise Misuse(f"{place(file, None)}: {name} is not {what}: write class {name}({write})")
    near = difflib.get_close_matches(name, all_, 1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(all_)}" if all_ else f"it has no {what.split()[1]}"
    raise Misuse(f"{place(file, None)}: no class {name}; {hint}")


def _line_of(cls: Class) -> str:
    """Return where a class is that cannot be played, as the begin of an error; empty if none was found."""
    if cls is World:
        return ""
    try:
        return place(inspect.getfile(cls), inspect.getsourcelines(cls)[1]) + ": "
    except (OSError, TypeError):
        return ""


class Session:
    """Serves one connection to the engine, in the thread that calls serve."""

    def __init__(self, sock: socket.socket, loader: Loader, own_process: bool = False) -> None:
        self._sock = sock
        self._own_process = own_process
        self._loader = loader
        self._lock = threading.Lock()
        self._episodes: dict[str, Episode] = {}
        self._class: Class = World
        self._envs: env.Sessions | None = None
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._ended = 0
        self._told: set[str] = set()  # errors of stand-ins
        self._watchdog = Watchdog()

    def serve(self) -> None:
        """Answer requests until the connection ends."""
        parts: list[bytes] = []
        handle = self._hello
        try:
            while True:
                data = self._sock.recv(_CHUNK)
                if not data:
                    return
                if b"\n" not in data:
                    parts.append(data)
                    continue
                lines = (b"".join(parts) + data).split(b"\n") if parts else data.split(b"\n")
                last = lines.pop()
                parts = [last] if last else []
                for line in lines:
                    handle(line)
                    handle = self._handle
        except (BrokenPipeError, ConnectionResetError):
            return  # the engine has ended
        finally:
            self._watchdog.stop()
            if self._pool is not None:
                self._pool.shutdown(wait=False, cancel_futures=True)

    def _send(self, *parts: bytes) -> None:
        line = b"".join(parts)
        with self._lock:
            self._sock.sendall(line)

    def _hello(self, line: bytes) -> None:
        """Read the first line, load the world and describe it."""
        m = cast("dict[str, Any]", _json.loads(line))
        try:
            if m.get("parley") != PROTOCOL:
                raise Misuse(f"the engine speaks version {m.get('parley')} of the worker protocol, this package {PROTOCOL}: use the same release of both")
            self._class = self._loader(m)
            limit = float(self._class.step_limit or m.get("limit") or 0)
            if issubclass(self._class, env.Env):
                self._envs = env.Sessions(self._class)
            answer = _json.record({**description(self._class), "limit": limit}, f"the params of {self._class.__name__}")
            self._watchdog.start(limit, "" if self._envs is not None else " Use await t.do(...) for long work", self._own_process)
        except BaseException as e:
            text = describe(e) if not isinstance(e, Error) else {"text": _line_of(self._class) + str(e)}
            answer = _json.record({"parley": PROTOCOL, "error": {k: v for k, v in text.items() if v}}, "error")
        self._send(answer, b"\n")
        if self._own_process:
            gc.collect()
            gc.freeze()  # what is loaded stays: do not look at it again and again
            gc.set_threshold(20_000, 20, 50)

    def _handle(self, line: bytes) -> None:
        """Answer one request."""
        try:
            m = cast("dict[str, Any]", _json.loads(line))
            op = m["op"]
        except (ValueError, RecursionError, KeyError, TypeError) as e:
            self._unreadable(line, e)
            return
        episode = None
        try:
            if op == "replies":
                episode = self._episode(m)
                step = episode.replies(m["strand"], m["replies"])
            elif op == "leave":
                self._leave(m["episode"])
                return
            elif op == "act":
                self._act(m)
                return
            else:
                step = self._other(op, m)
                episode = self._episodes.get(m.get("episode", ""))
        except (LookupError, TypeError, ValueError) as e:
            step = error_step(Error(f"request {op}: {e}"))
        if len(step) > _LONGEST - 100:
            step = _too_long(step)
            if episode is not None:
                episode.over = True
        if episode is not None and episode.over:
            self._leave(m["episode"])
            self._ended += 1
            if self._own_process and self._ended % _WEIGH == 0:
                step = step[:-1] + b',"memory":%d}' % memory()
        if step:
            self._send(b'{"id":%d,' % m["id"], step, b"\n")
        else:
            self._send(b'{"id":%d}\n' % m["id"])

    def _unreadable(self, line: bytes, e: BaseException) -> None:
        """Answer a line that cannot be read, such as an answer of a model that is nested very deeply."""
        found = re.search(rb'"id":\s*(\d+)', line[:300])
        if found is None:
            raise Error(f"a line of the engine cannot be read: {e}") from e
        self._send(b'{"id":%b,' % found[1], error_step(Error(f"the reply cannot be read: {e}")), b"\n")

    @property
    def _world(self) -> type[World]:
        return cast("type[World]", self._class)

    def _episode(self, m: Mapping[str, Any]) -> Episode:
        found = self._episodes.get(m["episode"])
        if found is None:
            raise LookupError(f"the worker has no episode {m['episode']!r}")
        return found

    def _leave(self, name: str) -> None:
        if self._envs is not None:
            self._envs.leave(name)
        episode = self._episodes.pop(name, None)
        if episode is not None:
            episode.close()

    def _other(self, op: str, m: Mapping[str, Any]) -> bytes:
        if op == "answer":
            return self._answer(m)
        if self._envs is not None:
            return _json.record(self._envs.answer(op, m), "the answer")[1:]
        if op == "begin":
            try:
                world = self._world(**m.get("params") or {})
            except BaseException as e:
                return error_step(e)
            episode = Episode(world, m.get("lineup") or {}, int(m["seed"]), int(m.get("deal", 0)))
            if "played" in m:
                episode.played = scorer.played(m["played"])
            self._leave(m["episode"])
            self._episodes[m["episode"]] = episode
            return episode.begin()
        if op == "strand":
            return self._episode(m).strand(m["strand"], m["of"], m["index"])
        if op == "joined":
            return self._episode(m).joined(m["strand"])
        if op == "refused":
            return self._episode(m).refused(m["strand"], m["text"])
        if op == "seats":
            return self._seats(m)
        raise ValueError("unknown op")

    def _seats(self, m: Mapping[str, Any]) -> bytes:
        try:
            world = self._world(**m.get("params") or {})
            made: dict[str, Any] = {"seats": _names(world.seats())}
            measures = [_measure(x) for x in _list_of(Measure, world.measures(), "measures()", "parley.Measure")]
            if measures:
                made["measures"] = measures
            return _json.record(made, "measures")[1:]
        except Invalid as e:
            return _json.record({"error": {"text": e.text, "param": e.param}}, "error")[1:]
        except Misuse as e:
            return _json.record({"error": {"text": _line_of(self._class) + str(e)}}, "error")[1:]
        except BaseException as e:
            return error_step(e)

    def _answer(self, m: Mapping[str, Any]) -> bytes:
        try:
            said = self._class.stand_in(m["model"], m["request"], int(m["seed"]))
            if said is None:
                return b""
            if isinstance(said, str):
                return _json.record({"text": said}, "answer")[1:]
            return _json.record({"calls": [_called(c) for c in said]}, "answer")[1:]
        except BaseException as e:
            text = "".join(c if c.isprintable() else " " for c in describe(e)["text"])  # it may have the text of a model
            if text not in self._told and len(self._told) < 10:  # the engine cannot: it asks for very many answers
                self._told.add(text)
                print(f"{self._class.__name__}.stand_in failed, so the simulated provider makes up the answer: {text}", file=sys.stderr, flush=True)
            return error_step(e)

    def _act(self, m: Mapping[str, Any]) -> None:
        """Run an act in a thread."""
        act = self._episode(m).pending(m["strand"], m["index"]).act
        if act is None:
            raise LookupError("the call is not an act")
        if self._pool is None:
            self._pool = concurrent.futures.ThreadPoolExecutor(max_workers=32, thread_name_prefix="parley-act")
        self._pool.submit(self._run_act, m["id"], m.get("key", ""), *act)

    def _run_act(self, number: int, key: str, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        try:
            result = acts.run(key, fn, args, kwargs)
            step = b'"result":' + _json.record(result, f"the result of {getattr(fn, '__qualname__', fn)}") + b"}"
            if len(step) > _LONGEST - 100:
                step = _too_long(step)
        except BaseException as e:
            step = error_step(e)
        try:
            self._send(b'{"id":%d,' % number, step, b"\n")
        except OSError:
            pass  # the engine has ended


def _called(call: Any) -> dict[str, str]:
    """Return a tool call of a stand-in as the protocol has it."""
    if not isinstance(call, Mapping) or set(cast("Mapping[str, Any]", call)) != {"name", "arguments"}:
        raise Misuse(f'stand_in returned the call {call!r:.80}: want {{"name": "price", "arguments": {{"item": "kettle"}}}}')
    given = cast("Mapping[str, Any]", call)
    return {"name": str(given["name"]), "arguments": _json.record(given["arguments"], "arguments").decode()}


def _too_long(step: bytes) -> bytes:
    return error_step(Misuse(f"a step of the world has {len(step) >> 20} MiB: its calls, notes and outcome may have {_LONGEST >> 20} MiB together"))


def memory() -> int:
    """Return how many bytes this process uses, or the most it has used where the system does not say."""
    try:
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        pass
    try:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS
    except ImportError:
        return 0


def _list_of(kind: type, made: Any, what: str, want: str) -> list[Any]:
    """Return what a method of a world returned as a list."""
    lists = isinstance(made, Iterable) and not isinstance(made, (str, Mapping))
    listed: list[Any] = list(cast("Iterable[Any]", made)) if lists else [None]
    if not all(isinstance(one, kind) for one in listed):
        raise Misuse(f"{what} returned {made!r:.80}: want a list of {want}")
    return listed


def _names(seats: Any) -> list[str]:
    return _list_of(str, seats, "seats()", "texts")


def _measure(m: Measure) -> dict[str, Any]:
    made: dict[str, Any] = {"name": m.name}
    if m.seats:
        made["seats"] = _names(m.seats)
    if m.rivals:
        made["rivals"] = True
    for name, bound in (("low", m.low), ("high", m.high)):
        if bound is not None:
            made[name] = bound
    return made


def connect(address: str) -> socket.socket:
    """Open the connection that PARLEY_WORKER names."""
    how, _, rest = address.partition(":")
    if how == "fd" and rest.isdigit():
        sock = socket.socket(fileno=int(rest))
        sock.set_inheritable(False)  # what an act starts must not hold the connection open
        return sock
    if how == "tcp":
        host, port, token = rest.split(":", 2)
        sock = socket.create_connection((host, int(port)))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.sendall(token.encode() + b"\n")
        return sock
    raise SystemExit(f"PARLEY_WORKER is {address!r}: want fd:N or tcp:HOST:PORT:TOKEN. The engine sets it: run a plan with parley run")


def _guarded(m: Mapping[str, Any]) -> Class:
    """Load the class that the first line names, and guard it."""
    found = load(m["file"], m["class"], m.get("role", ""))
    guard.watch(os.path.dirname(os.path.abspath(m["file"])))
    return found


def main() -> None:
    """Serve the engine that started this process."""
    address = os.environ.pop("PARLEY_WORKER", "")
    sock = connect(address)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the engine decides when to end
    sys.stdout.flush()
    os.dup2(2, 1)  # prints of a world are for the user
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        sys.stdout = sys.stderr
    if hasattr(signal, "SIGUSR1"):  # the engine asks where a step is that nothing interrupts
        faulthandler.register(signal.SIGUSR1, file=cast(Any, sock), all_threads=False)
    guard.install()
    Session(sock, _guarded, own_process=True).serve()
    print(end="", flush=True)
    os._exit(0)  # threads of acts may still run: nobody waits for them


if __name__ == "__main__":
    main()
