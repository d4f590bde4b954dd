"""Asks models without a world: ``parley.ask("What is a parley?")`` and ``parley.map(requests, model=…, budget=…)``."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, cast

from . import binary
from ._progress import Progress
from .errors import Error
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


def _requests(requests: Iterable[str | Mapping[str, Any]], made: Form[Any] | None, file: Any) -> int:
    count = 0
    for r in requests:
        line: dict[str, Any] = {"prompt": r} if isinstance(r, str) else dict(r)
        if made is not None and "schema" not in line:
            line["schema"] = json.loads(made.encoded)
        line.setdefault("id", count)
        file.write(json.dumps(line).encode() + b"\n")
        count += 1
    return count


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
    again with the same file, and only what is missing is asked. Other options are those of ``parley ask``, such as
    temperature, max_tokens, cache, retries, deadline.
    """
    made = form(schema) if schema is not None else None
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "requests.jsonl")
        with open(source, "wb") as f:
            count = _requests(requests, made, f)
        if count == 0:
            return []
        command = [binary.find(), "ask", source, *_flags({"model": model, "budget": budget, **options}), "--quiet"]
        if out is not None:
            command.append(f"--out={os.fspath(out)}")
        lines = _stream(command, count, Progress(progress))
        if out is not None:
            with open(out, "rb") as f:
                lines = f.readlines()
    answers = [Answer(json.loads(line), made) for line in lines]
    if len(answers) != count and not options.get("samples"):
        raise Error(f"parley ask gave {len(answers)} records for {count} requests")
    return answers


def _stream(command: list[str], count: int, progress: Progress) -> list[bytes]:
    """Run a command and collect its lines. Ctrl-C ends it after the calls in flight."""
    errors: list[bytes] = []
    process = binary.start(command)
    assert process.stdout is not None and process.stderr is not None
    reader = threading.Thread(target=lambda: errors.append(cast(Any, process.stderr).read()), daemon=True)
    reader.start()
    lines: list[bytes] = []
    failed = 0
    try:
        for line in process.stdout:
            lines.append(line)
            failed += b'"error":{"kind"' in line
            progress.show(f"asked {len(lines):,} of {count:,}" + (f", {failed:,} failed" if failed else ""))
    except KeyboardInterrupt:
        binary.interrupt(process)
        process.wait()
        raise
    finally:
        code = process.wait()
        reader.join()
        process.stdout.close()
        process.stderr.close()
    progress.show(f"asked {len(lines):,} of {count:,}" + (f", {failed:,} failed" if failed else ""), final=True)
    if code not in (0, 1):
        raise binary.ProgramError(b"".join(errors).decode("utf-8", "replace").strip(), code)
    return lines


def ask(
    prompt: str | Mapping[str, Any], *, model: str | None = None, schema: Schema[Any] | None = None, budget: float | None = None, **options: Any
) -> Answer[Any]:
    """Ask one question. Without a model, the simulated provider answers. Raises parley.Failed if there is no answer."""
    from .errors import Failed

    answer = ask_many([prompt], model=model, schema=schema, budget=budget, progress=False, **options)[0]
    if not answer.ok:
        raise Failed(f"{answer.failed}: {answer.message}", answer.failed)
    return answer
