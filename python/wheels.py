"""Builds the wheels of parley-llm: the package, and the program parley in its scripts.

``pip install ./python`` uses it as build backend and makes the wheel of this system, with a program that is already built
if there is one. ``python python/wheels.py`` builds those of all systems: the same commit gives the same bytes. Building needs Go,
and nothing else.
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
import shutil
import subprocess
import sys
import tempfile
import time
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

NO_GO = "parley-llm is built with Go 1.26 or newer, which is not installed: see https://go.dev/dl. Or name a program that is already built in PARLEY_BINARY"
SOURCES = ("cmd", "internal", "journal", "llm", "stats", "world", "worlds")
TERMINAL = "CONOUT$" if sys.platform == "win32" else "/dev/tty"


def field(name: str) -> str:
    """Return a field of pyproject.toml. Python 3.10 has no reader for it."""
    found = re.search(rf'^{name} = "(.*)"$', (HERE / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit(f"pyproject.toml has no {name}")
    return found[1]


def stem() -> str:
    """Return how the names of a wheel and its folders begin."""
    return f"{field('name').replace('-', '_')}-{field('version')}"


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
        raise SystemExit(NO_GO) from None
    except subprocess.CalledProcessError as e:
        raise SystemExit(f"go {args[0]} failed for {system} on {arch}") from e


def program(system: str, arch: str, into: Path) -> bytes:
    """Build the program and return its bytes."""
    out = into / f"parley-{system}-{arch}"
    go(system, arch, "build", "-trimpath", "-ldflags=-s -w", "-o", str(out), "./cmd/parley")
    return out.read_bytes()


def tell(text: str) -> None:
    """Say something to whoever waits. pip shows nothing that a build prints, so it goes to the terminal itself."""
    try:
        with open(TERMINAL, "w", encoding="utf-8") as terminal:
            terminal.write(f"\r{text}\n")
    except OSError:
        print(text, flush=True)


def newest() -> float:
    """Return when the newest file of the program's source was changed."""
    files = [*ROOT.glob("*.go"), *ROOT.glob("go.*"), *(f for folder in SOURCES for f in (ROOT / folder).rglob("*"))]
    return max(f.stat().st_mtime for f in files if f.is_file() and not f.name.endswith("_test.go"))


def built() -> Path | None:
    """Return the program that PARLEY_BINARY names, or one in the clone, beside the interpreter or in PATH that is newer than its source."""
    named = os.environ.get("PARLEY_BINARY")
    if named:
        if not runs(Path(named)):
            raise SystemExit(f"PARLEY_BINARY is {named!r}: no program parley for this system")
        return Path(named)
    name = "parley.exe" if sys.platform == "win32" else "parley"
    source = newest()
    for path in (ROOT / name, Path(sys.executable).parent / name, Path(shutil.which("parley") or name)):
        if path.is_file() and path.stat().st_mtime > source and runs(path):
            return path
    return None


def runs(path: Path) -> bool:
    """Report whether a file is the program, and not a script that starts it somewhere else."""
    try:
        with path.open("rb") as f:
            return f.read(2) != b"#!" and subprocess.run([path, "--version"], capture_output=True, check=False, timeout=60).stdout.startswith(b"parley ")
    except (OSError, subprocess.TimeoutExpired):
        return False


def local(into: Path) -> tuple[bytes, bytes]:
    """Return the program of this system and the licences of its modules, for pip."""
    found = built()
    if found is not None:
        tell(f"parley-llm: takes the program {found}, which is already built")
        return found.read_bytes(), b"This wheel was made on this machine with a program that was already built. python python/wheels.py writes the licences of its modules.\n"
    tell("parley-llm: compiles the program parley with Go. The first time, this takes one to ten minutes.")
    out = into / "parley"
    began = told = time.monotonic()
    packages, rest = 0, []
    # Without the flags of a release, what go build, go run or go test have compiled here before is used.
    try:
        build = subprocess.Popen(["go", "build", "-v", "-ldflags=-s -w", "-o", str(out), "./cmd/parley"], cwd=ROOT, stderr=subprocess.PIPE, encoding="utf-8")
    except FileNotFoundError:
        raise SystemExit(NO_GO) from None
    assert build.stderr is not None
    for line in build.stderr:
        if " " in line.strip():
            rest.append(line)
            continue
        packages += 1
        if time.monotonic() - told > 10:
            told = time.monotonic()
            tell(f"parley-llm: compiled {packages} packages in {told - began:.0f} s")
    if build.wait() != 0:
        raise SystemExit("go build failed:\n" + "".join(rest[-20:]))
    tell(f"parley-llm: compiled in {time.monotonic() - began:.0f} s")
    return out.read_bytes(), licences(*host())


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
        self.stem = stem()
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


def build(folder: Path, system: str, arch: str, backend: bool = False, editable: bool = False) -> str:
    """Build one wheel and return its file name. As the backend of pip, it is for this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        binary, terms = local(Path(work)) if backend else (program(system, arch, Path(work)), licences(system, arch))
    wheel = Wheel(folder, TARGETS[system, arch])
    if editable:
        wheel.add("parley_llm.pth", f"{HERE / 'src'}\n".encode())
    else:
        for file in sorted((HERE / "src" / "parley").iterdir()):
            if file.suffix == ".py" or file.name == "py.typed":
                wheel.add(f"parley/{file.name}", file.read_bytes())
    name = "parley.exe" if system == "windows" else "parley"
    wheel.add(f"{wheel.stem}.data/scripts/{name}", binary, 0o755)
    return wheel.close(terms)


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Write the metadata alone. Without this, pip builds the wheel twice."""
    info = Path(metadata_directory) / f"{stem()}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(metadata(), encoding="utf-8")
    return info.name


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel of this system, for pip."""
    return build(Path(wheel_directory), *host(), backend=True)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Build the wheel of ``pip install -e``."""
    return build(Path(wheel_directory), *host(), backend=True, editable=True)


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
