"""Options of scripts: those of the checks, and a few of the frameworks' own.

Each is a variable of the environment, KILN_NAME, so that it reaches every
process that a script starts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..errors import RefusedError
from ..options import option_names

#: Which configurations an autotuner runs: a number of them, or all.
CONFIGS = "configs"

#: Of the checks, but not of programs that launch kernels themselves.
_OF_COMMANDS = {"timeline", "stats"}
#: The other way round.
_OF_PROGRAMS = ("kernel", "launch", "capture")


def names() -> list[str]:
    """As the command line has them."""
    checks = [name for name in option_names() if name not in _OF_COMMANDS]
    checks += [name for name in _OF_PROGRAMS if name not in checks]
    return [name.replace("_", "-") for name in checks] + [CONFIGS]


def is_option(name: str) -> bool:
    return name in names()


def variable(name: str) -> str:
    """The variable that an option is."""
    return "KILN_" + name.upper().replace("-", "_")


def put_in_environment(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        word = name.replace("_", "-")
        if not is_option(word):
            raise RefusedError(f"'{name}' is not an option; the options are {', '.join(names())}")
        if value is None:
            continue
        text = ("off", "on")[value] if isinstance(value, bool) else str(value)
        os.environ[variable(word)] = text
    configurations()


def configurations() -> int | None:
    """How many configurations an autotuner runs; None: all of them."""
    text = os.environ.get(variable(CONFIGS), "1")
    if text == "all":
        return None
    if not text.isdigit() or int(text) == 0:
        raise RefusedError(f"--{CONFIGS} is '{text}'; it takes all or a whole number from 1 on")
    return int(text)
