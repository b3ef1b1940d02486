"""`python -m kiln` and the `kiln` command."""

from __future__ import annotations

import subprocess
import sys

import kiln
import pytest
from conftest import DATA
from kiln._library import PACKAGE


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kiln", *words], capture_output=True, text=True, timeout=60, **options
    )


def test_the_self_test():
    done = run("--self-test")
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith(" s\n") and "PASS" in done.stdout
    assert run("--self-test", "now").returncode == 3


def test_commands():
    done = run("explain", "race")
    assert done.returncode == 0 and done.stdout.startswith("race (error)")
    assert run("--version").stdout.startswith(f"kiln {kiln.__version__}")
    assert run("nonsense").returncode == 3
    done = run("sim", str(DATA / "lazy_only.ptx"), "--launch", str(DATA / "none.json"))
    assert done.returncode == 3 and "none.json" in done.stderr


@pytest.mark.skipif(not (PACKAGE / "bin").exists(), reason="a source tree has the whole command")
@pytest.mark.parametrize("name", ["gemm", "attention", "grouped-gemm", "emit", "tune", "bench"])
def test_commands_of_the_compiler_name_what_is_missing(name):
    done = run(name, "64", "64", "64", "--stages", "3")
    assert done.returncode == 4 and done.stdout == ""
    assert "install the distribution kiln-gpu-compiler" in done.stderr


def test_importing_is_quick_and_needs_nothing():
    script = (
        "import sys, time; t = time.monotonic(); import kiln; took = time.monotonic() - t;"
        "print([m for m in ('numpy', 'torch', 'pytest') if m in sys.modules], took < 1)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[] True\n", done.stderr
