"""The version: the installed distribution's, or that of the source tree."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from ._library import PACKAGE

DISTRIBUTION = "kiln-gpu"


def _version() -> str:
    lists = PACKAGE.parent.parent / "CMakeLists.txt"
    if not (PACKAGE / "lib").exists() and lists.exists():
        found = re.search(r"project\(kiln VERSION ([\d.]+)", lists.read_text())
        return found[1] if found else "0"
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "0"


__version__ = _version()
