"""Wheels: names, contents, RECORD. The program in them is a fake; CI installs a real one."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import parley

PYTHON = Path(__file__).resolve().parents[1]


@pytest.fixture
def wheels(monkeypatch: pytest.MonkeyPatch) -> Any:
    spec = importlib.util.spec_from_file_location("wheels", PYTHON / "wheels.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "program", lambda system, arch, into: f"{system} {arch}".encode())
    monkeypatch.setattr(module, "licences", lambda system, arch: b"MIT")
    module.__dict__["really_runs"] = module.runs
    monkeypatch.setattr(module, "runs", lambda path: path.is_file() and path.read_bytes().startswith(b"parley"))
    monkeypatch.setattr(module, "TERMINAL", str(PYTHON / "no" / "terminal"))
    monkeypatch.setattr(module.shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "executable", str(PYTHON / "no" / "python"))
    monkeypatch.delenv("PARLEY_BINARY", raising=False)
    return module


@pytest.fixture
def clone(wheels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone whose program was not built yet, and a go command that builds it."""
    for name in ("go.mod", "parley.go", "internal/run.go", "internal/run_test.go", "LICENSE"):
        (tmp_path / "clone" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "clone" / name).write_text(name)
    monkeypatch.setattr(wheels, "ROOT", tmp_path / "clone")
    (tmp_path / "bin").mkdir()
    go = tmp_path / "bin" / "go"
    go.write_text("#!/bin/sh\necho parley/llm >&2\nwhile [ $# -gt 1 ]; do [ $1 = -o ] && echo parley, compiled >$2; shift; done\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    return tmp_path / "clone"


def packed(folder: Path, name: str) -> bytes:
    """Return the program of a wheel."""
    with zipfile.ZipFile(folder / name) as z:
        return z.read(next(n for n in z.namelist() if "/scripts/" in n))


@pytest.mark.skipif(sys.platform == "win32", reason="its go command is a script of sh")
def test_a_program_that_is_built_is_taken(wheels: Any, clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """pip compiles only if there is no program that is newer than the source, and says what it does."""

    def made() -> bytes:
        return packed(tmp_path, wheels.build_wheel(str(tmp_path)))

    assert made() == b"parley, compiled\n" and "compiles the program parley with Go" in capsys.readouterr().out
    other = tmp_path / "other"
    other.write_bytes(b"parley, of PATH")
    monkeypatch.setattr(wheels.shutil, "which", lambda name: str(other))
    assert made() == b"parley, of PATH" and f"takes the program {other}, which is already built" in capsys.readouterr().out
    later = other.stat().st_mtime + 10
    os.utime(clone / "internal" / "run_test.go", (later, later))
    assert made() == b"parley, of PATH"
    os.utime(clone / "internal" / "run.go", (later, later))
    assert made() == b"parley, compiled\n"
    (clone / "parley").write_bytes(b"something else")
    os.utime(clone / "parley", (later + 10, later + 10))
    assert made() == b"parley, compiled\n"
    (clone / "parley").write_bytes(b"parley, of the clone")
    os.utime(clone / "parley", (later + 10, later + 10))
    assert made() == b"parley, of the clone"
    monkeypatch.setenv("PARLEY_BINARY", str(other))
    assert made() == b"parley, of PATH"
    monkeypatch.setenv("PARLEY_BINARY", str(tmp_path / "none"))
    with pytest.raises(SystemExit, match="PARLEY_BINARY is .*: no program parley"):
        made()


def test_scripts_are_not_the_program(wheels: Any, tmp_path: Path) -> None:
    """What starts the program, such as a shim of pyenv, is not in the wheel in its place."""
    shim = tmp_path / "parley"
    shim.write_text("#!/bin/sh\necho parley 1\n")
    shim.chmod(0o755)
    assert not wheels.really_runs(shim) and not wheels.really_runs(tmp_path / "none") and not wheels.really_runs(PYTHON / "wheels.py")


def test_metadata_builds_nothing(wheels: Any, tmp_path: Path) -> None:
    """pip asks for the metadata first, and would build the wheel for it."""
    for folder, make in ((tmp_path / "wheel", wheels.prepare_metadata_for_build_wheel), (tmp_path / "editable", wheels.prepare_metadata_for_build_editable)):
        assert (folder / make(str(folder)) / "METADATA").read_text() == wheels.metadata()


def test_wheels(wheels: Any, tmp_path: Path) -> None:
    for target, tags in wheels.TARGETS.items():
        name = wheels.build(tmp_path, *target)
        assert name == f"parley_llm-{parley.__version__}-py3-none-{tags}.whl"
        with zipfile.ZipFile(tmp_path / name) as z:
            names = z.namelist()
            script = next(n for n in names if "/scripts/" in n)
            assert script.endswith("parley.exe" if target[0] == "windows" else "/parley")
            assert z.getinfo(script).external_attr >> 16 & 0o777 == 0o755 and z.read(script) == " ".join(target).encode()
            assert {"parley/__init__.py", "parley/worker.py", "parley/py.typed"} <= set(names) and not any("__pycache__" in n for n in names)
            info = f"parley_llm-{parley.__version__}.dist-info"
            rows = list(csv.reader(io.StringIO(z.read(f"{info}/RECORD").decode())))
            assert [r[0] for r in rows] == names
            for path, digest, size in rows[:-1]:
                data = z.read(path)
                assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode() and size == str(len(data))
            assert rows[-1][1:] == ["", ""]
            head = z.read(f"{info}/METADATA").decode()
            assert "Name: parley-llm\n" in head and 'Requires-Dist: orjson>=3.9 ; extra == "fast"\n' in head and "Requires-Python: >=3.10\n" in head
            assert z.read(f"{info}/WHEEL").decode().count("Tag: ") == len(tags.split("."))


def test_wheels_are_the_same_every_time(wheels: Any, tmp_path: Path) -> None:
    target = next(iter(wheels.TARGETS))
    first = (tmp_path / wheels.build(tmp_path, *target)).read_bytes()
    assert (tmp_path / wheels.build(tmp_path, *target)).read_bytes() == first


def test_backend(wheels: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "local", lambda into: (b"parley", b"MIT"))
    assert (tmp_path / wheels.build_wheel(str(tmp_path))).exists()
    with zipfile.ZipFile(tmp_path / wheels.build_editable(str(tmp_path))) as z:
        assert z.read("parley_llm.pth").decode().strip() == str(PYTHON / "src")
    with pytest.raises(SystemExit, match="no source distribution"):
        wheels.build_sdist(str(tmp_path))
