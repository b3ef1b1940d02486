"""`python -m kiln --self-test`: whether this installation works."""

from __future__ import annotations

import sys


def main(words: list[str]) -> int:
    from . import __version__

    if words:
        print(f"kiln: error: --self-test takes no '{words[0]}'", file=sys.stderr)
        return 3
    print(f"kiln {__version__}")
    return 0
