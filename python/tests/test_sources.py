"""Which code a class consists of."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from parley import worker
from parley._sources import sources

WORLD = "import parley, helper\nfrom pack.inner import x\nimport json\nclass W(parley.World):\n    def seats(self): return ['a']\n    async def play(self, t):\n        import late\n"
FILES = {"w.py": WORLD, "helper.py": "from os import path\n", "late.py": "", "unused.py": "", "json.py": "", "pack/__init__.py": "from . import beside", "pack/inner.py": "from ..helper import path\nx = 1", "pack/beside.py": ""}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a world imports from its folder belongs to it, also if it is imported late or by another file."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    write(tmp_path, {**FILES, "pack/inner.py": "x = 1"})
    found = sources(worker.load(str(tmp_path / "w.py"), "W"))
    assert list(found) == ["helper.py", "late.py", "pack/__init__.py", "pack/beside.py", "pack/inner.py", "w.py"]
    write(tmp_path, {"helper.py": "from os import path\r\n"})
    assert sources(worker.load(str(tmp_path / "w.py"), "W")) == found, "the end of lines does not matter"
    write(tmp_path, {"pack/beside.py": "y = 2"})
    after = sources(worker.load(str(tmp_path / "w.py"), "W"))
    assert [n for n in found if found[n] != after[n]] == ["pack/beside.py"]


SCRIPT = """
    import parley, helper
    from parley._sources import sources
    LIMIT = 3
    def rule(n): return min(n, LIMIT)
    class Base(parley.World):
        def seats(self): return ["a"]
    class W(Base):
        rounds: int = 3
        async def play(self, t):
            return parley.Outcome({"n": rule(self.rounds)})
    print(sorted(sources(W).items()))
"""


@pytest.mark.parametrize(("old", "new", "changes"), [
    ("print(", "other = 1\n    print(", False), ("LIMIT = 3", "LIMIT = 4", True), ("min(n", "max(n", True), ("rounds: int = 3", "rounds: int = 4", True), ('["a"]', '["b"]', True), ('"n"', '"m"', True),
])  # fmt: skip
def test_script(tmp_path: Path, old: str, new: str, changes: bool) -> None:
    """Of a script, only what its class uses counts."""
    write(tmp_path, {"helper.py": ""})

    def played(text: str) -> str:
        (tmp_path / "s.py").write_text(textwrap.dedent(text))
        return subprocess.run([sys.executable, "s.py"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    before, after = played(SCRIPT), played(SCRIPT.replace(old, new))
    assert "'s.py:W'" in before and "'helper.py'" in before
    assert (before != after) == changes
