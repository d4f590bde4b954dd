"""The loop that learns, as far as it needs no PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOOP = Path(__file__).resolve().parents[2] / "examples" / "grpo" / "loop.py"


def test_program_that_is_missing(tmp_path: Path) -> None:
    """It says what to do, and leaves no folder that the next try would find."""
    out = tmp_path / "out"
    done = subprocess.run([sys.executable, str(LOOP), "--parley", str(tmp_path / "none"), "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 2 and "--parley PATH" in done.stderr and "Traceback" not in done.stderr and not out.exists(), done.stderr


def test_program_that_fails(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(LOOP), "--parley", sys.executable, "--out", str(tmp_path / "out")], capture_output=True, text=True)
    assert done.returncode == 1 and "ended with exit code 2" in done.stderr and "Traceback" not in done.stderr, done.stderr
