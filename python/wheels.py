"""Builds the wheels of parley-llm: the package, and the program parley in its scripts.

``pip install ./python`` uses it as build backend and builds the wheel of this system. ``python python/wheels.py`` builds
those of all systems. Both need Go, and nothing else. The same commit gives the same bytes.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

# GOOS, GOARCH: the tag of the wheel. A static program runs with glibc and with musl. Go's own minimum decides macOS's version.
TARGETS = {
    ("linux", "amd64"): "manylinux2014_x86_64.musllinux_1_1_x86_64",
    ("linux", "arm64"): "manylinux2014_aarch64.musllinux_1_1_aarch64",
    ("darwin", "amd64"): "macosx_12_0_x86_64",
    ("darwin", "arm64"): "macosx_12_0_arm64",
    ("windows", "amd64"): "win_amd64",
    ("windows", "arm64"): "win_arm64",
}


def field(name: str) -> str:
    """Return a field of pyproject.toml. Python 3.10 has no reader for it."""
    found = re.search(rf'^{name} = "(.*)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"pyproject.toml has no {name}")
    return found[1]


def extras() -> list[str]:
    """Return the metadata of the optional dependencies."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]\n", 1)[1].split("\n\n", 1)[0]
    out: list[str] = []
    for line in section.splitlines():
        name, _, needs = line.partition(" = ")
        out.append(f"Provides-Extra: {name}")
        out.extend(f'Requires-Dist: {need} ; extra == "{name}"' for need in re.findall(r'"([^"]+)"', needs))
    return out


def metadata() -> str:
    """Return METADATA."""
    head = [
        "Metadata-Version: 2.4",
        f"Name: {field('name')}",
        f"Version: {field('version')}",
        f"Summary: {field('description')}",
        f"License-Expression: {field('license')}",
        "License-File: LICENSE",
        "License-File: LICENSES.txt",
        f"Requires-Python: {field('requires-python')}",
        *extras(),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(head) + "\n\n" + (HERE / "README.md").read_text(encoding="utf-8")


def go(system: str, arch: str, *args: str) -> str:
    """Run the go command for a system and return what it prints."""
    env = {**os.environ, "CGO_ENABLED": "0", "GOOS": system, "GOARCH": arch}
    try:
        return subprocess.run(["go", *args], cwd=ROOT, env=env, check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout
    except FileNotFoundError:
        raise SystemExit("parley-llm is built with Go 1.26 or newer, which is not installed: see https://go.dev/dl") from None
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"go {args[0]} failed for {system} on {arch}") from e


def program(system: str, arch: str, into: Path) -> bytes:
    """Build the program and return its bytes."""
    out = into / f"parley-{system}-{arch}"
    go(system, arch, "build", "-trimpath", "-ldflags=-s -w", "-o", str(out), "./cmd/parley")
    return out.read_bytes()


def licences(system: str, arch: str) -> bytes:
    """Return the licence of every module in the program, as their terms ask for."""
    form = "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"
    out: list[bytes] = []
    for line in sorted(set(go(system, arch, "list", "-deps", "-f", form, "./cmd/parley").splitlines())):
        path, version, folder = line.split(" ", 2)
        out.append(f"{'=' * 72}\n{path} {version}\n\n".encode())
        found = [f for f in Path(folder).iterdir() if f.is_file() and re.match(r"licen[cs]e|copying|notice", f.name, re.IGNORECASE)]
        out.extend(f.read_bytes() for f in sorted(found))
    return b"".join(out)


def host() -> tuple[str, str]:
    """Return GOOS and GOARCH of this system."""
    machine = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}.get(platform.machine().lower())
    system = {"linux": "linux", "darwin": "darwin", "win32": "windows"}.get(sys.platform)
    if machine is None or system is None:
        raise SystemExit(f"no wheel for {sys.platform} on {platform.machine()}; build the program with go build and set PARLEY_BINARY")
    return system, machine


class Wheel:
    """A wheel that is written."""

    def __init__(self, folder: Path, tags: str) -> None:
        self.stem = f"{field('name').replace('-', '_')}-{field('version')}"
        self.tags = tags
        self.path = folder / f"{self.stem}-py3-none-{tags}.whl"
        self.zip = zipfile.ZipFile(self.path, "w", zipfile.ZIP_DEFLATED)
        self.rows: list[tuple[str, str, str]] = []

    def add(self, name: str, data: bytes, mode: int = 0o644) -> None:
        """Add a file."""
        info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        self.rows.append((name, f"sha256={digest}", str(len(data))))

    def close(self, licences: bytes) -> str:
        """Add the metadata and finish the wheel. Returns its file name."""
        info = f"{self.stem}.dist-info"
        tags = "".join(f"Tag: py3-none-{t}\n" for t in self.tags.split("."))
        self.add(f"{info}/METADATA", metadata().encode())
        self.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: parley\nRoot-Is-Purelib: false\n{tags}".encode())
        self.add(f"{info}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes())
        self.add(f"{info}/licenses/LICENSES.txt", licences)
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows([*self.rows, (f"{info}/RECORD", "", "")])
        self.zip.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)), table.getvalue())
        self.zip.close()
        return self.path.name


def build(folder: Path, system: str, arch: str, editable: bool = False) -> str:
    """Build one wheel and return its file name."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        binary = program(system, arch, Path(work))
    wheel = Wheel(folder, TARGETS[system, arch])
    if editable:
        wheel.add("parley_llm.pth", f"{HERE / 'src'}\n".encode())
    else:
        for file in sorted((HERE / "src" / "parley").iterdir()):
            if file.suffix == ".py" or file.name == "py.typed":
                wheel.add(f"parley/{file.name}", file.read_bytes())
    name = "parley.exe" if system == "windows" else "parley"
    wheel.add(f"{wheel.stem}.data/scripts/{name}", binary, 0o755)
    return wheel.close(licences(system, arch))


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel of this system, for pip."""
    return build(Path(wheel_directory), *host())


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel of ``pip install -e``."""
    return build(Path(wheel_directory), *host(), editable=True)


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    """Refuse: the program is built from the whole repository."""
    raise SystemExit("parley-llm has no source distribution: build wheels in a clone with python python/wheels.py")


def main() -> None:
    """Build wheels from the command line."""
    parser = argparse.ArgumentParser(description="Build the wheels of parley-llm. Needs Go.")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="the folder to write to (default: dist)")
    parser.add_argument("--host", action="store_true", help="only the wheel of this system")
    args = parser.parse_args()
    for target in [host()] if args.host else TARGETS:
        print(args.out / build(args.out, *target))


if __name__ == "__main__":
    main()
