"""`python -m kiln [OPTIONS] script.py [ARGUMENTS]`."""

from __future__ import annotations

import os
import runpy
import sys
import types
from collections.abc import Sequence

from ..errors import KilnError, RefusedError
from . import activation, environment, settings


def _split(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options in front of the script, by their names, and the rest."""
    given: dict[str, str] = {}
    left = list(words)
    while left and left[0].startswith("--") and left[0] != "--":
        name, equals, value = left.pop(0)[2:].partition("=")
        if not settings.is_option(name):
            known = ", ".join(f"--{known}" for known in settings.names())
            raise RefusedError(f"--{name} is not an option of a script; the options are {known}")
        if not equals:
            if not left:
                raise RefusedError(f"--{name} takes a value")
            value = left.pop(0)
        given[name] = value
    if left and left[0] == "--":
        left.pop(0)
    return given, left


def is_script_line(words: Sequence[str]) -> bool:
    """Whether these words mean a script rather than a command of `kiln`."""
    first = words[0]
    if first.startswith("--"):
        return settings.is_option(first[2:].partition("=")[0])
    return first == "-m" or first.endswith(".py") or (os.sep in first and os.path.isfile(first))


def _run(words: list[str]) -> None:
    """As Python itself runs a script or a module."""
    if words[0] == "-m":
        if len(words) < 2:
            raise RefusedError("-m takes the name of a module")
        sys.argv = words[1:]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    if not os.path.isfile(words[0]):
        raise RefusedError(f"{words[0]} cannot be read: there is no such file")
    sys.argv = words
    sys.path.insert(0, os.path.dirname(os.path.abspath(words[0])))
    runpy.run_path(words[0], run_name="__main__")


def _without_own_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback from the script on."""
    own = (os.path.dirname(os.path.abspath(__file__)), "<frozen runpy>", runpy.__file__)
    at = trace
    while at and at.tb_frame.f_code.co_filename.startswith(own):
        at = at.tb_next
    return at or trace


def _status_of(ended: SystemExit) -> int:
    if ended.code is None:
        return 0
    if isinstance(ended.code, int):
        return ended.code
    print(ended.code, file=sys.stderr)
    return 1


def _guarded(words: list[str]) -> int:
    try:
        _run(words)
    except SystemExit as ended:
        return _status_of(ended)
    except KilnError:
        raise
    except BaseException as error:
        error.__traceback__ = _without_own_frames(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return 0


def run_script(words: Sequence[str]) -> int:
    """The exit status: the script's own; 2 where it says 0 and a check found an
    error; 3 where it was not started."""
    try:
        given, script = _split(words)
        if not script:
            raise RefusedError("a script is required: python -m kiln script.py arguments...")
        settings.put_in_environment(given)
        environment.enter()  # does not return where the process begins again
        activation.activate()
        status = _guarded(script)
    except KilnError as error:
        print(f"kiln: error: {error}", file=sys.stderr)
        return 3 if isinstance(error, RefusedError) else 4
    sys.stdout.flush()
    return status or activation.exit_status()
