"""The `kiln` executable that the wheel brings, or a source tree has built."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from ._library import LIBRARIES, PACKAGE


def _compiler() -> Path | None:
    """The executable of the second distribution, which has the compiler."""
    spec = find_spec("kiln_compiler")
    if not spec or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / "bin" / "kiln"
    return path if path.exists() else None


def executable() -> Path:
    """The `kiln` command: with the compiler, where that is installed."""
    own = PACKAGE / "bin" / "kiln"
    return _compiler() or (own if own.exists() else LIBRARIES.parent / "kiln")


def run(words: list[str]) -> int:
    """Become the command."""
    path = executable()
    if not path.exists():
        print(f"kiln: error: {path} was not found; install kiln-gpu again", file=sys.stderr)
        return 4
    sys.stdout.flush()
    os.execv(path, ["kiln", *words])
