"""Asks models without a world: ``parley.ask("What is a parley?")`` and ``parley.map(requests, model=…, budget=…)``."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from . import _json, binary
from ._progress import Progress
from .errors import Error, Interrupted, Misuse
from .schema import Form, Schema, form

T = TypeVar("T")


class Answer(Generic[T]):
    """The answer to a request, or why there is none: ``failed`` is the kind of the failure and ``message`` its text."""

    __slots__ = ("id", "text", "json", "failed", "message", "usage", "record", "_form")

    def __init__(self, record: Mapping[str, Any], form: Form[T] | None = None) -> None:
        self.record = record
        response = cast("Mapping[str, Any]", record.get("response") or {})
        error = cast("Mapping[str, Any]", record.get("error") or {})
        self.id: Any = record.get("id")
        self.text: str = response.get("text", "")
        self.json: Any = response.get("json")
        self.usage: Mapping[str, Any] = response.get("usage", {})
        self.failed: str = error.get("kind", "")
        self.message: str = error.get("message", "")
        self._form = form

    @property
    def ok(self) -> bool:
        """Whether the request was answered."""
        return not self.failed

    @property
    def value(self) -> T | None:
        """The answer as the type that was given as schema, or None if there is none."""
        return self._form.read(self.json) if self._form is not None and self.json is not None else None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Answer({self.text!r})" if self.ok else f"Answer(failed={self.failed!r}, message={self.message!r})"


def _flags(options: Mapping[str, Any]) -> list[str]:
    """Turn max_tokens=5 into --max-tokens=5."""
    out: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            out.append(flag)
        elif value is not None and value is not False:
            text = ",".join(map(str, cast("list[Any]", value))) if isinstance(value, (list, tuple)) else str(value)
            out.append(f"{flag}={text}")
    return out


class _Notice:
    """Whether this process was told that answers are simulated."""

    simulated = False


def _tell_simulated(level: int) -> None:
    """Warn once that the simulated provider answers. The caller of parley is so many levels up."""
    if not _Notice.simulated:
        _Notice.simulated = True
        warnings.warn("answered by sim/small, which is simulated; name a model with model=", stacklevel=level)


def _named(model: str | None, options: Mapping[str, Any]) -> bool:
    """Whether the options say which model answers requests that name none."""
    return bool(model or options.get("base_url") or options.get("dialect"))


def _requests(requests: Iterable[str | Mapping[str, Any]], made: Form[Any] | None, file: Any, named: bool) -> list[Any]:
    """Write requests as lines and return their ids. Without a named model, requests may name their own."""
    ids: list[Any] = []
    for r in requests:
        if not isinstance(r, (str, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise Misuse(f"request {len(ids)} is a {type(r).__name__}: want a text or a dict")
        line: dict[str, Any] = {"prompt": r} if isinstance(r, str) else dict(r)
        if "files" in line:  # they would have to be in the folder of a file of requests
            raise Misuse(f"request {len(ids)}: files: give their content as parts of messages instead")
        if made is not None and "schema" not in line:
            line["schema"] = json.loads(made.encoded)
        if not named and not line.get("model"):
            _tell_simulated(4)
        ids.append(line.setdefault("id", len(ids)))
        file.write(_json.record(line, f"request {len(ids) - 1}") + b"\n")
    return ids


def ask_many(
    requests: Iterable[str | Mapping[str, Any]],
    *,
    model: str | None = None,
    schema: Schema[Any] | None = None,
    budget: float | None = None,
    out: str | os.PathLike[str] | None = None,
    progress: bool = True,
    **options: Any,
) -> list[Answer[Any]]:
    """Ask many requests at once, within the provider's limits, and return the answers in the same order.

    A request is a prompt, or a dict of the fields that docs/how-to/ask.md lists. ``out`` names a file of records: call it
    again with the same file, and only what is missing is asked. Answers of the file to other questions are never returned: once
    all are asked, they are moved to a file beside it that ends in .stale. ``budget`` is in dollars. With ``out``, what the records in both files cost
    counts too; without it, each call has its own budget. What the budget does not allow has ``failed == "budget"``. Other options are those of ``parley ask``, such as temperature, max_tokens, tier, cache, retries, deadline.

    Ctrl-C finishes the calls in flight and raises parley.Interrupted, whose ``answers`` are those that were given.
    """
    if isinstance(requests, (str, Mapping)):
        raise Misuse("map takes a list of requests: for one, use parley.ask")
    if budget is not None and not (isinstance(budget, (int, float)) and budget > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise Misuse(f"budget {budget!r:.40}: want an amount above 0, or None for no limit")
    samples = options.get("samples") or 1
    if not isinstance(samples, int) or samples < 1:
        raise Misuse(f"samples {samples!r:.40}: want a whole number, 1 or more")
    made = form(schema) if schema is not None else None
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "requests.jsonl")
        with open(source, "wb") as f:
            ids = _requests(requests, made, f, _named(model, options))
        if not ids:
            return []
        command = [binary.find(), "ask", source, *_flags({"model": model, "budget": budget, **options}), "--quiet"]
        count = len(ids) * samples
        with binary.Interrupts() as interrupts:  # until the answers are there: Ctrl-C at any moment loses none
            full = command if out is None else [*command, f"--out={os.fspath(out)}"]
            done = _ask(full, out, Progress(progress), count, interrupts).named(source)
            records: list[Any] = [json.loads(line) for line in done.lines] if done.code != 2 else []  # a file may have answers to other questions
            if done.code not in (0, 1):
                message = "it was not asked before the interrupt" if interrupts.came else done.text
                wanted = [{"id": i} for i in ids for _ in range(samples)] if done.code == 2 else _digests(command, source)
                records = _complete(records, wanted, {"kind": "budget" if done.code == 3 else "canceled", "message": message})
            elif len(records) != count:
                raise Error(f"parley ask gave {len(records)} records for {len(ids)} requests")
            answers = [Answer(r, made) for r in records]
    if interrupts.came:
        given = sum(a.ok for a in answers)
        raise Interrupted(f"{given:,} of {len(answers):,} requests were answered: the attribute answers of this exception has them. In a notebook: sys.last_value.answers", answers)
    if done.code not in (0, 1, 3):
        raise binary.ProgramError(done.text, done.code, answers if done.lines and done.code != 2 else [])
    return answers


def _digests(command: list[str], source: str) -> list[Any]:
    """Return the records of the requests before they are asked: with digests, or an error for what is not a request."""
    listed = _ask([*command, "--digests"], None, Progress(False), 0).named(source)
    if listed.code not in (0, 1):
        raise binary.ProgramError(listed.text, listed.code)
    return [json.loads(line) for line in listed.lines]


def _complete(records: list[Any], wanted: list[Any], why: Mapping[str, str]) -> list[Any]:
    """Return a record for each wanted one: that with its id, sample and digest. If there is none, it has an error that says why."""

    def key(record: Any) -> str:
        return json.dumps([record["id"], record.get("sample", 0), record.get("digest")])

    asked = {key(r): r for r in records if "line" not in r}
    return [w if "error" in w else asked.pop(key(w), {"id": w["id"], "error": why}) for w in wanted]


@dataclasses.dataclass(frozen=True)
class _Asked:
    """How ``parley ask`` ended: its records, its exit code and what it said."""

    lines: list[bytes]
    code: int
    text: str

    def named(self, source: str) -> _Asked:
        """Return it with texts that name requests by their number, and not by the lines of a file that the caller does not know."""
        line = re.compile(rb"(?:%b|%b):(\d+)" % (re.escape(source.encode()), re.escape(json.dumps(source)[1:-1].encode())))

        def plain(text: bytes) -> bytes:
            return line.sub(lambda m: b"request %d" % (int(m[1]) - 1), text)

        lines = [plain(x) if b'"error"' in x else x for x in self.lines]
        text = plain(self.text.encode()).decode()
        if self.code == 2:  # it names flags: the caller wrote options
            text = re.sub(r"\nusage: .*", "", text, flags=re.DOTALL).replace("parley: ask: unknown flag", "parley: unknown option")
            text = re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), text)
        return dataclasses.replace(self, lines=lines, text=text)


def _ask(command: list[str], out: str | os.PathLike[str] | None, progress: Progress, count: int, interrupts: binary.Interrupts | None = None) -> _Asked:
    """Run a command to its end. With interrupts, Ctrl-C ends it after the calls in flight, and a second one at once."""
    lines: list[bytes] = []
    errors: list[bytes] = []
    counted = _Counted(out)
    before = os.path.getsize(out) if out is not None and os.path.isfile(out) else -1
    code: int | None = None
    process = binary.start(command)
    if interrupts is not None:
        interrupts.pass_to(process)
    assert process.stdout is not None and process.stderr is not None
    output, complaints = process.stdout, process.stderr
    readers = [threading.Thread(target=lambda: lines.extend(output), daemon=True), threading.Thread(target=lambda: errors.extend(complaints), daemon=True)]
    for r in readers:
        r.start()
    while code is None:
        try:
            code = process.wait(0.2)
        except subprocess.TimeoutExpired:
            progress.show(f"answered {len(lines) if out is None else counted.look():,} of {count:,}")
    for r in readers:
        r.join()
    binary.close(process)
    text = b"".join(errors).decode("utf-8", "replace").strip()
    if out is not None and os.path.isfile(out):
        with open(out, "rb") as f:
            lines = f.readlines()
    lines = [line for line in lines if line.endswith(b"\n")]  # the last one is cut off if the program was killed
    if code in (0, 1, 3):
        failed = sum(b'"error":{"kind"' in line for line in lines)
        told = ", all of them before: nothing was asked" if out is not None and os.path.getsize(out) == before else ""
        progress.show(f"answered {len(lines) - failed:,} of {count:,}{told}" + (f", {failed:,} failed" if failed else "") + (f": {text}" if code == 3 else ""), final=True)
    return _Asked(lines, code, text)


class _Counted:
    """Counts the lines of a file that grows."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = path
        self._at = self._lines = 0

    def look(self) -> int:
        try:
            with open(cast(Any, self._path), "rb") as f:
                f.seek(self._at)
                while data := f.read(1 << 20):
                    self._at += len(data)
                    self._lines += data.count(b"\n")
        except OSError:  # it is not there yet
            pass
        return self._lines


def ask(
    prompt: str | Mapping[str, Any], *, model: str | None = None, schema: Schema[Any] | None = None, budget: float | None = None, **options: Any
) -> Answer[Any]:
    """Ask one question. Without a model, the simulated provider answers. Raises parley.Failed if there is no answer."""
    from .errors import Failed

    if not _named(model, options) and (isinstance(prompt, str) or not prompt.get("model")):
        _tell_simulated(3)
    answer = ask_many([prompt], model=model, schema=schema, budget=budget, progress=False, **options)[0]
    if not answer.ok:
        raise Failed(f"{answer.failed}: {answer.message}", answer.failed)
    return answer
