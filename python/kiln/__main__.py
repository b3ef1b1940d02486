"""`python -m kiln`, and the `kiln` command of the wheel.

    python -m kiln script.py [arguments]     a program, on Kiln's devices
    python -m kiln -m module [arguments]     the same for a module
    python -m kiln --self-test               whether this installation works
    python -m kiln sim kernel.json ...       a command of `kiln`

A word that ends in .py, or names a file, is a script, in front of which options
of the checks may stand (--interleavings 8); every other first word is a command
of the `kiln` executable.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def _run_script(words: Sequence[str]) -> int:
    from .frameworks import run_script

    return run_script(list(words))


def _self_test(words: Sequence[str]) -> int:
    from .self_test import main

    return main(list(words))


#: What this package does itself, by the first word; `-m` and scripts go to
#: kiln.frameworks.
_OWN: dict[str, Callable[[Sequence[str]], int]] = {"--self-test": _self_test}


def _is_script(words: Sequence[str]) -> bool:
    from .frameworks import is_script_line

    return is_script_line(words)


def command(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says: the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words and words[0] in _OWN:
        return _OWN[words[0]](words[1:])
    if words and _is_script(words):
        return _run_script(words)
    from .executable import run

    return run(words)


if __name__ == "__main__":
    sys.exit(command())
