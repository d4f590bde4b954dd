"""Wheels: names, contents, RECORD. The program in them is a fake; CI installs a real one."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
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
    return module


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


def test_backend(wheels: Any, tmp_path: Path) -> None:
    assert (tmp_path / wheels.build_wheel(str(tmp_path))).exists()
    with zipfile.ZipFile(tmp_path / wheels.build_editable(str(tmp_path))) as z:
        assert z.read("parley_llm.pth").decode().strip() == str(PYTHON / "src")
    with pytest.raises(SystemExit, match="no source distribution"):
        wheels.build_sdist(str(tmp_path))
