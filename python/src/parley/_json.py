"""JSON in and out: orjson where it is installed and its version can be used, otherwise the standard library.

``record`` writes what is compared with earlier plays: notes, outcomes, schemas, bodies of acts. It always uses the
standard library, so that the bytes do not depend on what is installed. ``quote`` writes a text; both write the same.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable
from typing import Any, cast

from .errors import Misuse


def _plain(value: Any) -> Any:
    """Turn what JSON does not know into what it knows."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)  # pydantic
    if callable(dump):
        return dump(mode="json")
    name = cast(Any, type(value)).__name__
    remedy = "; use sorted(...)" if name in ("set", "frozenset") else ""
    raise TypeError(f"a {name} is not JSON{remedy}")


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
_decoder = json.JSONDecoder()


def record(value: Any, what: str) -> bytes:
    """Write a value for the record. An error says what cannot be written."""
    try:
        return _encoder.encode(value).encode()
    except UnicodeEncodeError as e:
        raise Misuse(f"{what}: a text has a half of a character (a lone surrogate): {e.object[e.start:e.end]!r}") from None
    except RecursionError:
        raise Misuse(f"{what}: it is nested too deeply for JSON") from None
    except (TypeError, ValueError) as e:
        text = str(e)
        if "Out of range float" in text:
            text = "NaN and infinity are not JSON"
        raise Misuse(f"{what}: {text}") from None


def _std_quote(text: str) -> bytes:
    return json.encoder.encode_basestring(text).encode()


def _std_loads(line: bytes) -> Any:
    return _decoder.raw_decode(line.decode())[0]


def _choose() -> tuple[str, Callable[[str], bytes], Callable[[bytes], Any]]:
    try:
        orjson = cast(Any, importlib.import_module("orjson"))
        return "orjson", orjson.dumps, orjson.loads
    except (ImportError, AttributeError):
        return "json", _std_quote, _std_loads


name, quote, loads = _choose()


def use(which: str) -> None:
    """Choose ``json`` or ``orjson``, for the benchmark."""
    global name, quote, loads
    name, quote, loads = ("json", _std_quote, _std_loads) if which == "json" else _choose()
