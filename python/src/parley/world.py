"""What the author of a world uses: World, Table, Talk."""

from __future__ import annotations

import hashlib
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeVar, cast, overload

from . import _json, params
from ._json import record
from .errors import Failed, Misuse
from .guard import fold
from .rand import Rand
from .schema import Schema, form
from .values import Call, Measure, Message, Outcome, Reply, Settings

T = TypeVar("T")
R = TypeVar("R")


class World:
    """The rules of one episode. Subclass it: typed fields are the params, ``seats`` lists the seats, ``play`` plays.

    A world must be a pure function of its params and its replies: the engine plays it again to resume a run. Set
    ``durable = "episode"`` if it cannot be one; an unfinished episode then begins again.
    """

    version: ClassVar[int] = 1
    durable: ClassVar[Literal["turn", "episode"]] = "turn"
    step_limit: ClassVar[float | None] = None
    """How many seconds a step may take. None: a minute."""

    def __init__(self, **values: Any) -> None:
        params.make(type(self), values, self, World)

    def seats(self) -> Sequence[str]:
        """Check the params and list the seats. Raise ``parley.Invalid("bidders", "want 2 to 20")`` for a wrong one."""
        raise NotImplementedError(f"{type(self).__name__} has no method seats: add one that returns the names of the seats")

    def measures(self) -> Sequence[Measure]:
        """Declare the scores of outcomes. Empty: they are not known in advance."""
        return ()

    async def play(self, t: Table) -> Outcome | None:
        """Play the episode to its end."""
        raise NotImplementedError(f"{type(self).__name__} has no method play: add async def play(self, t)")

    @classmethod
    def stand_in(cls, model: str, request: Mapping[str, Any], seed: int) -> str | Sequence[Mapping[str, Any]] | None:
        """Answer a request for the simulated provider, or return None if it is not one of this world.

        To call tools, return a list such as ``[{"name": "price", "arguments": {"item": "kettle"}}]``.
        """
        return None


@types.coroutine
def _pause(what: str) -> Generator[str, Any, Any]:
    return (yield what)


ASK, FORK = "ask", "fork"  # what a strand waits for: these objects, not equal ones

_ROLES = ("system", "user", "assistant", "tool")

_heads: dict[tuple[str, str], bytes] = {}


def _head(seat: str, label: str) -> bytes:
    """Return the begin of a call."""
    if not isinstance(seat, str) or not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f"a call to the seat {seat!r} with the label {label!r}: both must be texts")
    made = b'{"seat":' + record(seat, "seat") + (b',"label":' + record(label, "label") if label else b"")
    if len(_heads) < 10_000:
        _heads[seat, label] = made
    return made


def _messages(prompt: str | Sequence[Message], system: str) -> bytes:
    """Encode messages, without the brackets."""
    quote = _json.quote
    try:
        if isinstance(prompt, str):
            user = b'{"role":"user","content":' + quote(prompt) + b"}"
            return b'{"role":"system","content":' + quote(system) + b"}," + user if system else user
        out = [b'{"role":"system","content":' + quote(system) + b"}"] if system else []
        for m in prompt:
            if m["role"] not in _ROLES:
                raise Misuse(f"a message has the role {m['role']!r}: want one of {', '.join(_ROLES)}")
            content = m["content"] if len(m) == 2 else None
            if isinstance(content, str):
                out.append(b'{"role":' + quote(m["role"]) + b',"content":' + quote(content) + b"}")
            else:
                out.append(record(m, "a message"))
    except (TypeError, KeyError, ValueError) as e:
        record([prompt, system], "the prompt")  # says if a text cannot be written
        raise Misuse(f'the prompt must be a text or a list of messages such as {{"role": "user", "content": "…"}}: {e!r}') from None
    return b",".join(out)


class Table:
    """The world's way to its seats. Each strand has its own."""

    __slots__ = ("_episode", "_name", "_coro", "_calls", "_out", "_forks", "_results", "_notes", "_rand", "_of", "_index", "_talks")

    def __init__(self, episode: Any, name: str, of: Table | None = None, index: int = 0) -> None:
        self._episode = episode
        self._name = name
        self._coro: Coroutine[Any, Any, Any] | None = None
        self._calls: tuple[Call[Any], ...] = ()
        self._out = b""
        self._forks: Sequence[Callable[..., Any]] | tuple[int, Callable[..., Any]] | None = None
        self._results: list[Any] = []
        self._notes: list[bytes] | None = None
        self._rand: Rand | None = None
        self._of = of
        self._index = index
        self._talks = 0

    def _check(self, what: str) -> None:
        if fold.table is not self:
            raise Misuse(f"{what} at the table of another strand: a strand of a fork uses the table it is given, and no other")

    def _know(self, seat: str) -> None:
        """Refuse a seat that the world does not have, in the line that names it."""
        if not isinstance(seat, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Misuse(f"the seat {seat!r} must be a text")
        if seat not in self._episode.lineup:
            self._episode.known(seat, "the world asks")

    @property
    def lineup(self) -> Mapping[str, str]:
        """Which agent sits in which seat."""
        return self._episode.lineup

    @property
    def rand(self) -> Rand:
        """The strand's source of chance. It is the same on every play."""
        self._check("t.rand")
        if self._rand is None:
            e = self._episode
            text = (e.seed & (1 << 64) - 1).to_bytes(8, "big") + (e.deal & (1 << 64) - 1).to_bytes(8, "big") + self._name.encode()
            h = hashlib.sha256(text).digest()
            self._rand = Rand(int.from_bytes(h[:8], "big"), int.from_bytes(h[8:16], "big"))
        return self._rand

    @overload
    def call(self, seat: str, prompt: str | Sequence[Message], *, label: str = "", schema: type[T], system: str = "", **settings: Any) -> Call[T]: ...
    @overload
    def call(
        self, seat: str, prompt: str | Sequence[Message], *, label: str = "", schema: Mapping[str, Any] | None = None, system: str = "", **settings: Any
    ) -> Call[Any]: ...
    def call(
        self, seat: str, prompt: str | Sequence[Message], *, label: str = "", schema: Schema[Any] | None = None, system: str = "", **settings: Any
    ) -> Call[Any]:
        """Make a call to a seat: a prompt or messages. Ask with ``await t.ask(call, …)``.

        ``schema`` is the form of the answer: a pydantic model, a dataclass, a TypedDict or a JSON Schema. Other settings:
        tools, tool_choice, temperature, top_p, max_tokens, stop, effort, seed.
        """
        self._know(seat)
        return _call(seat, label, b',"messages":[' + _messages(prompt, system) + b"]", schema, settings)

    def act(self, fn: Callable[..., Any], *args: Any, seat: str = "", label: str = "", **kwargs: Any) -> Call[Any]:
        """Make a call that runs a function outside of the world. Arguments and result are JSON."""
        if not callable(fn):
            raise Misuse(f"t.do({fn!r}): the first argument must be a function")
        name = f"{getattr(fn, '__module__', '')}.{getattr(fn, '__qualname__', type(fn).__name__)}"
        body = {"args": args, "kwargs": kwargs} if kwargs else args
        act = record({"name": name, "body": body}, f"the arguments of {name}")
        if seat:
            self._know(seat)
        head = _heads.get((seat, label)) or _head(seat, label)
        return Call(head + b',"act":' + act + b"}", None, (fn, args, kwargs))

    async def ask(self, *calls: Call[T]) -> list[Reply[T]]:
        """Make calls at once, wait for all replies, and return them in the same order."""
        self._check("t.ask")
        if not calls:
            return []
        try:
            self._out = b",".join([c.encoded for c in calls])
        except AttributeError:
            raise Misuse("t.ask takes what t.call returns: await t.ask(t.call(seat, prompt), …)") from None
        self._calls = calls
        raws = await _pause(ASK)
        self._calls = ()
        return [Reply(raw, call.form) for raw, call in zip(raws, calls)]

    @overload
    async def one(self, seat: Call[T]) -> Reply[T]: ...
    @overload
    async def one(self, seat: str, prompt: str | Sequence[Message], *, label: str = "", schema: type[T], system: str = "", **settings: Any) -> Reply[T]: ...
    @overload
    async def one(
        self, seat: str, prompt: str | Sequence[Message], *, label: str = "", schema: Mapping[str, Any] | None = None, system: str = "", **settings: Any
    ) -> Reply[Any]: ...
    async def one(self, seat: str | Call[Any], prompt: str | Sequence[Message] = "", **settings: Any) -> Reply[Any]:
        """Make one call, given as a call or as its parts, and return its reply."""
        call = seat if isinstance(seat, Call) else self.call(seat, prompt, **settings)
        return (await self.ask(call))[0]

    async def do(self, fn: Callable[..., Any], *args: Any, seat: str = "", label: str = "", **kwargs: Any) -> Any:
        """Run a function outside of the world, in a thread, and return its recorded result: any JSON.

        When the episode is played again, the recorded result is used and the function is not run. It may run a second time if
        the process was killed before the result was recorded: parley.act_key() is then the same. Raises parley.Failed if the
        function raised; its text has the type and the text of the exception.
        """
        reply = await self.one(self.act(fn, *args, seat=seat, label=label, **kwargs))
        if not reply.ok:
            raise Failed(f"{getattr(fn, '__qualname__', fn)} failed: {reply.why or reply.failed}", reply.failed)
        return reply.json

    @overload
    async def fork(self, n: int, play: Callable[[Table, int], Awaitable[R]], /) -> list[R]: ...
    @overload
    async def fork(self, *plays: Callable[[Table], Awaitable[R]]) -> list[R]: ...
    async def fork(self, *what: Any) -> list[Any]:
        """Play several strands that do not wait for each other, and return their results when all have ended.

        ``await t.fork(n, play)`` plays ``play(t, i)`` for each i below n; ``await t.fork(f, g)`` plays ``f(t)`` and ``g(t)``.
        Each gets its own table. They may read shared data, but must write only their own.
        """
        self._check("t.fork")
        if what and isinstance(what[0], int):
            if len(what) != 2 or not callable(what[1]):
                raise Misuse("t.fork(n, play): play must be an async function of a table and a number")
            n, self._forks = what[0], cast("tuple[int, Callable[..., Any]]", what)
        else:
            if not all(callable(f) for f in what):
                raise Misuse("t.fork(f, g): give async functions, not coroutines: t.fork(f), not t.fork(f(t))")
            n, self._forks = len(what), what
        if n < 0:
            raise Misuse(f"t.fork({n}, …): want 0 or more strands")
        if n == 0:
            return []
        self._results = [None] * n
        await _pause(FORK)
        results, self._results, self._forks = self._results, [], None
        return results

    def note(self, kind: str, data: Any = None, seat: str = "") -> None:
        """Record something for readers: any JSON, a dataclass or a pydantic model."""
        self._check("t.note")
        if not isinstance(kind, str) or not isinstance(seat, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Misuse("t.note(kind, data, seat): kind and seat must be texts")
        made = b'{"kind":' + record(kind, "kind") + (b',"seat":' + record(seat, "seat") if seat else b"")
        made += b',"data":' + record(data, f"note {kind}") + b"}"
        if self._notes is None:
            self._notes = [made]
        else:
            self._notes.append(made)

    def phase(self, name: str) -> None:
        """Begin a phase of the episode with your own name for it, such as "round 2". Readers see it, and people use it with parley fork --phase."""
        self._check("t.phase")
        if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Misuse("t.phase(name): name must be a text")
        self.note("phase", name)

    def _new_talk(self) -> int:
        """Return the number of a new talk. It does not depend on what other strands do."""
        self._talks += 1
        base = int.from_bytes(hashlib.sha256(self._name.encode()).digest()[:5], "big") << 20 if self._name else 0
        return base + self._talks

    def talk(self, seat: str, system: str = "") -> Talk:
        """Begin a conversation with a seat, which remembers what was said."""
        return Talk(self, seat, system)


def _call(seat: str, label: str, messages: bytes, schema: Schema[Any] | None, settings: Mapping[str, Any]) -> Call[Any]:
    parts = [_heads.get((seat, label)) or _head(seat, label), messages]
    made = None
    if schema is not None:
        made = form(schema)
        parts.append(b',"schema":' + made.encoded)
    if settings:
        unknown = settings.keys() - Settings.__annotations__.keys()
        if unknown:
            raise TypeError(f"a call has no setting {', '.join(sorted(unknown))}; known are {', '.join(Settings.__annotations__)}")
        given = {k: v for k, v in settings.items() if v is not None}
        if given:
            parts.append(b"," + record(given, "settings of a call")[1:-1])
    parts.append(b"}")
    return Call(b"".join(parts), made)


class Talk:
    """A conversation with one seat. Only what is new is sent to the engine. A call that fails leaves it as it was."""

    __slots__ = ("seat", "_table", "_number", "_keep", "_new", "_waits")

    def __init__(self, table: Table, seat: str, system: str) -> None:
        table._know(seat)  # pyright: ignore[reportPrivateUsage]
        self.seat = seat
        self._table = table
        self._number = table._new_talk()  # pyright: ignore[reportPrivateUsage]
        self._keep = 0
        self._new: list[bytes] = [_messages([{"role": "system", "content": system}], "")] if system else []
        self._waits = False

    def add(self, *messages: Message) -> None:
        """Add messages that are sent with the next call, such as the result of a tool."""
        self._new.extend(_messages([m], "") for m in messages)

    @overload
    async def say(self, text: str, *, label: str = "", schema: type[T], table: Table | None = None, **settings: Any) -> Reply[T]: ...
    @overload
    async def say(
        self, text: str | None = None, *, label: str = "", schema: Mapping[str, Any] | None = None, table: Table | None = None, **settings: Any
    ) -> Reply[Any]: ...
    async def say(
        self, text: str | None = None, *, label: str = "", schema: Schema[Any] | None = None, table: Table | None = None, **settings: Any
    ) -> Reply[Any]:
        """Say something as the user, and return the reply, which becomes a part of the conversation.

        In a strand of a fork, give the strand's table. Without a text, only what was added is sent.
        """
        if self._waits:
            raise Misuse("talk.say while the talk waits for a reply: make a talk for each strand")
        new = self._new if text is None else [*self._new, _messages(text, "")]
        if not new:
            raise Misuse("talk.say without a text: nothing was added to the talk since the last reply")
        body = b',"talk":%d,"keep":%d,"messages":[%b]' % (self._number, self._keep, b",".join(new))
        self._waits = True
        try:
            reply = (await (table or self._table).ask(_call(self.seat, label, body, schema, settings)))[0]
        finally:
            self._waits = False
        if reply.ok:
            self._keep += len(new)
            self._new = [_assistant(reply)]
        return reply


def _assistant(reply: Reply[Any]) -> bytes:
    """Return a reply as a message."""
    calls = reply.tool_calls
    if not calls:
        return b'{"role":"assistant","content":' + _json.quote(reply.text) + b"}"
    return record({"role": "assistant", "content": reply.text, "tool_calls": calls}, "a reply")
