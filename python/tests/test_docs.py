"""The pages about Python show what is there, and their worlds can be played."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_program import environment, program  # noqa: F401

import parley
from parley.testing import exercise

ROOT = Path(__file__).resolve().parents[2]
PAGES = {name: (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8") for name in ("python", "python-world")}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("page", "name"),
    [("python-world", "auction.py"), ("python-world", "auction.yaml"), ("python-world", "test_auction.py"), ("python-world", "wordle.py"), ("python-world", "wordle.yaml"), ("python", "polite.py")],
)
def test_the_page_shows_the_example(page: str, name: str) -> None:
    text = (ROOT / "examples" / "python" / name).read_text(encoding="utf-8")
    assert text in blocks(page, "yaml" if name.endswith(".yaml") else "python")


@pytest.mark.parametrize(("page", "base", "count"), [("python", parley.World, 1), ("python-world", parley.World, 3), ("python-world", parley.Env, 2)])
def test_classes_of_the_pages(page: str, base: type[Any], count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [b for b in blocks(page, "python") if f"(parley.{base.__name__})" in b]
    assert len(found) == count
    if page == "python-world":
        pytest.importorskip("greenlet")
    monkeypatch.syspath_prepend(str(tmp_path))
    for i, block in enumerate(found):
        name = f"{page.replace('-', '_')}_{base.__name__}_{i}"
        (tmp_path / f"{name}.py").write_text("import parley\n" + block)
        for name, cls in vars(__import__(name)).items():
            if isinstance(cls, type) and issubclass(cls, base):
                exercise(cls)


def test_running_of_the_page(program: str, tmp_path: Path) -> None:  # noqa: F811
    """The code of a script runs as it is shown."""
    (block,) = [b for b in blocks("python", "python") if "parley.run(Auction" in b]
    for name in ("auction.py", "auction.yaml"):
        shutil.copy(ROOT / "examples" / "python" / name, tmp_path)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0 and {p.name for p in tmp_path.glob("*.parley")} == {"run.parley", "secrets.parley", "auction.parley"}, done.stderr


def test_asking_of_the_page(program: str, tmp_path: Path) -> None:  # noqa: F811
    """The code runs as it is shown, without a key."""
    (block,) = [b for b in blocks("python", "python") if "parley.map(" in b]
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "Verdict(prime=" in done.stdout, done.stderr


def test_plan_of_the_page(program: str, tmp_path: Path) -> None:  # noqa: F811
    """The world that a loop became has a plan, which runs."""
    (world,) = [b for b in blocks("python", "python") if "class Debate(parley.World)" in b]
    (plan,) = blocks("python", "yaml")
    (tmp_path / "debate.py").write_text(world)
    (tmp_path / "debate.yaml").write_text(re.sub(r"model: [\w/.-]+", "model: sim/small", plan))
    args = [program, "run", "debate.yaml", "--json", "--trust", "code=debate.py"]
    done = subprocess.run(args, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_code_of_the_pages_compiles() -> None:
    for page in PAGES:
        for block in blocks(page, "python"):
            compile(block, page, "exec", flags=0x2000, dont_inherit=True)  # PyCF_ALLOW_TOP_LEVEL_AWAIT
    assert sys.version_info >= (3, 10)
