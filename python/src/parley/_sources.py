"""Says which code a class consists of, so that a run is not continued with other code without notice."""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

from .errors import is_own, place


def sources(cls: type) -> dict[str, str]:
    """Return the SHA-256 of the files of a class: its own file, and what that imports from its folder.

    A class of a script or a notebook has one entry: of its own code and of what that uses of the script. The rest of a script
    may change between two processes of a run.
    """
    named = getattr(sys.modules.get(cls.__module__), "__file__", None)
    file = os.path.abspath(named) if isinstance(named, str) and os.path.isfile(named) else ""
    if file and cls.__module__ != "__main__":
        return _files(file, True)
    own = f"{place(file, None) if file else 'notebook'}:{cls.__name__}"
    return {own: _digest("\n".join(_parts(cls, cls.__module__)).encode()), **(_files(file, False) if file else {})}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def _files(first: str, own: bool) -> dict[str, str]:
    """Follow the imports of a file within its folder. own says whether the file itself is listed."""
    folder = os.path.dirname(first)
    found: dict[str, str] = {}
    todo, seen = [first], {first}
    while todo:
        file = todo.pop()
        try:
            with open(file, "rb") as f:
                data = f.read()
            tree = ast.parse(data)
        except (OSError, ValueError, SyntaxError, RecursionError):
            continue  # whoever imports it reports this
        if own or file != first:
            found[os.path.relpath(file, folder).replace(os.sep, "/")] = _digest(data)
        for path in _imports(tree, os.path.dirname(file), folder):
            if path not in seen and not is_own(path):
                seen.add(path)
                todo.append(path)
    return dict(sorted(found.items()))


def _imports(tree: ast.AST, here: str, folder: str) -> Iterator[str]:
    """List the files within a folder that a file imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _modules(folder, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = os.path.normpath(os.path.join(here, *[".."] * (node.level - 1))) if node.level else folder
            for alias in node.names:
                yield from _modules(base, [*(node.module.split(".") if node.module else []), alias.name], node.level > 0)


def _modules(base: str, names: list[str], relative: bool = False) -> Iterator[str]:
    """List the files of a module and of the packages that hold it."""
    if not relative and names[0] in sys.stdlib_module_names:
        return
    for i in range(1, len(names) + 1):
        path = os.path.join(base, *names[:i])
        for file in (path + ".py", os.path.join(path, "__init__.py")):
            if os.path.isfile(file):
                yield file


def _parts(value: Any, module: str, seen: set[int] | None = None) -> Iterator[str]:
    """List the texts of a class or a function of a module, and of what it uses of the module."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, type) and value.__module__ == module:
        yield f"class {value.__name__}({', '.join(b.__name__ for b in value.__bases__)})"
        for base in value.__bases__:
            yield from _parts(base, module, seen)
        for name, part in sorted(vars(value).items()):
            if name not in ("__module__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__"):
                yield name
                yield from _parts(getattr(part, "__func__", getattr(part, "fget", part)), module, seen)
    elif isinstance(value, types.FunctionType):
        if value.__module__ == module:
            yield _text(value)
            for name in _names(value.__code__):
                if name in value.__globals__:
                    yield name
                    yield from _parts(value.__globals__[name], module, seen)
    elif isinstance(value, (str, int, float, bool, type(None), tuple, list, dict)):
        try:
            yield json.dumps(cast(Any, value), default=lambda o: type(o).__name__)
        except (TypeError, ValueError, RecursionError):
            yield type(cast(Any, value)).__name__


def _text(function: types.FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # typed into a prompt
        return repr(function.__code__.co_code)


def _names(code: types.CodeType) -> Iterator[str]:
    """List the names that a function and those within it use."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _names(const)
