"""Reads run files: ``parley.open("run.parley").scores().pandas()``."""

from __future__ import annotations

import html
import importlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from . import _json, binary
from .errors import Error

if TYPE_CHECKING:
    import pandas  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]
    import polars  # pyright: ignore[reportMissingImports]
    import pyarrow  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]


class Rows:
    """A table of a run. Iterate over it for dicts, or convert it to pandas, polars or Arrow. docs/how-to/export.md lists the columns."""

    def __init__(self, paths: list[str], table: str, columns: tuple[str, ...] = ()) -> None:
        self._paths = paths
        self._table = table
        self._what = ["export", *paths, "--table", table, *(f"--columns={','.join(columns)}" for _ in columns[:1])]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read the rows one by one, without holding the table in memory."""
        command = [binary.find(), *self._what, "--format", "jsonl"]
        with tempfile.TemporaryFile() as errors, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors) as process:
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    yield _json.loads(line)
            except GeneratorExit:
                process.kill()
                raise
            code = process.wait()
            if code not in (0, 1):
                errors.seek(0)
                raise binary.ProgramError(errors.read().decode("utf-8", "replace").strip(), code)

    def _parquet(self, folder: str) -> str:
        path = os.path.join(folder, f"{self._table}.parquet")
        binary.run([*self._what, "--out", path], allowed=(0, 1))
        return path

    def pandas(self) -> pandas.DataFrame:  # pyright: ignore
        """Return a pandas DataFrame. Needs pandas and pyarrow."""
        library, _ = _import("pandas", self), _import("pyarrow", self)
        with tempfile.TemporaryDirectory() as folder:
            return library.read_parquet(self._parquet(folder))

    def polars(self) -> polars.DataFrame:  # pyright: ignore
        """Return a polars DataFrame. Needs polars."""
        library = _import("polars", self)
        with tempfile.TemporaryDirectory() as folder:
            return library.read_parquet(self._parquet(folder), memory_map=False)

    def arrow(self) -> pyarrow.Table:  # pyright: ignore
        """Return an Arrow table. Needs pyarrow."""
        _import("pyarrow", self)
        library = cast(Any, importlib.import_module("pyarrow.parquet"))
        with tempfile.TemporaryDirectory() as folder:
            return library.read_table(self._parquet(folder), memory_map=False)

    def __repr__(self) -> str:
        return f"<{self._table} of {', '.join(self._paths)}: iterate over it, or use .pandas(), .polars() or .arrow()>"


def _import(name: str, rows: Rows) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        needs = "polars" if name == "polars" else "pandas pyarrow"
        raise Error(f"{name} is not installed: pip install {needs}, or iterate over the rows for dicts") from None


class Report:
    """The report of a run: it shows itself in a notebook, and ``html`` is the page."""

    def __init__(self, page: str) -> None:
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        with open(path, "w", encoding="utf-8") as f:
            f.write(self.html)

    def _repr_html_(self) -> str:
        # The page is from files that others may have written: it gets a frame of its own, without access to the notebook.
        page = html.escape(self.html, quote=True)
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width:100%;height:800px;border:1px solid #ccc"></iframe>'

    def __repr__(self) -> str:
        return f"<report, {len(self.html):,} characters of HTML: use save(path)>"


class Run:
    """One or more run files, read as one."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def episodes(self, *columns: str) -> Rows:
        """One row for each episode: its cell, lineup, state, scores and cost. Name columns to read only these."""
        return Rows(self._paths, "episodes", columns)

    def calls(self, *columns: str) -> Rows:
        """One row for each call: who was asked, what was answered, tokens, cost and time. Name columns to read only these, which is faster."""
        return Rows(self._paths, "calls", columns)

    def messages(self, *columns: str) -> Rows:
        """One row for each message of each prompt. Name columns to read only these."""
        return Rows(self._paths, "messages", columns)

    def scores(self, *columns: str) -> Rows:
        """One row for each score of each episode. Name columns to read only these."""
        return Rows(self._paths, "scores", columns)

    def table(self, name: str, *columns: str) -> Rows:
        """One row for each row of a table that the kind makes, such as orders. Name columns to read only these."""
        return Rows(self._paths, name, columns)

    def report(self, *by: str) -> Report:
        """Return the report of the run, also grouped by factors: a tag, a param, agent, model, seat and so on."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "report.html")
            binary.run(["report", *self._paths, "--html", path, *(f"--by={','.join(by)}" for _ in by[:1])], allowed=(0, 1))
            with open(path, encoding="utf-8") as f:
                return Report(f.read())

    def _repr_html_(self) -> str:
        rows = [_show(p) for p in self._paths[:20]]
        more = f"<p>and {len(self._paths) - 20} more files</p>" if len(self._paths) > 20 else ""
        return table(rows, ("run", "kind", "state", "episodes", "failed", "calls", "cost")) + more + "<p>.report() is the page; .scores(), .episodes() and .calls() are tables</p>"

    def __repr__(self) -> str:
        return f"<run {', '.join(self._paths)}: .episodes(), .calls(), .messages(), .scores(), .report()>"


def _show(path: str) -> tuple[str, ...]:
    """Return the row of a run file."""
    made = cast("dict[str, Any]", _json.loads(binary.run(["show", path, "--json"], allowed=(0, 1)).stdout))
    episodes = made["episodes"]
    return os.path.basename(path), made["kind"], made["state"], f"{episodes['total']:,}", f"{episodes['failed']:,}", f"{made['calls']:,}", dollars(made)


def dollars(summary: Mapping[str, Any]) -> str:
    """Return what a run cost."""
    cost = summary.get("cost_usd")
    return "cost unknown" if cost is None else "$" + (f"{cost:,.6f}".rstrip("0").rstrip("."))


def interval(ends: Any) -> str:
    """Return an interval of a summary."""
    return f"{ends['low']:.4g} to {ends['high']:.4g}" if ends and ends.get("low") is not None and ends.get("high") is not None else ""


def table(rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = ()) -> str:
    """Return a small table for a notebook. Its texts are from files that others may have written."""

    def row(cells: tuple[str, ...], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(str(c)[:200])}</{tag}>' for c in cells) + "</tr>"

    return "<table>" + (row(head, "th") if head else "") + "".join(row(r, "td") for r in rows) + "</table>"


def open_run(path: str | os.PathLike[str], *more: str | os.PathLike[str]) -> Run:
    """Open a run file, or several as one."""
    paths = [os.fspath(p) for p in (path, *more)]
    for p in paths:
        if not os.path.exists(p):
            raise FileNotFoundError(f"{p}: no such run file")
        if not _is_run(p):
            binary.run(["show", p], allowed=(0, 1))  # it says what the file is
    return Run(paths)


def _is_run(path: str) -> bool:
    """Report whether a file has the marks of a run file: those of SQLite, and the application id."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as f:
        head = f.read(72)
    return head.startswith(b"SQLite format 3\0") and head.endswith(b"PRLY")
