"""What goes wrong, as exceptions.

The library has four kinds of error, told apart by the exit status that the
`kiln` command has for each. Each is a KilnError, and besides what Python calls
such a mistake.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import Report


class KilnError(Exception):
    """Everything that Kiln raises, but for a TypeError of a wrong argument."""


class RefusedError(KilnError, ValueError):
    """A kernel, an argument or an option is wrong; the message has its value,
    and what is accepted."""


class MachineError(KilnError, RuntimeError):
    """This machine lacks something: a driver, memory, a file that cannot be
    written, the compiler."""


class InternalError(KilnError, RuntimeError):
    """A defect of Kiln itself: please report it."""


class FindingError(KilnError, AssertionError):
    """A check found an error. `report` has all of it."""

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


class Interrupted(KeyboardInterrupt):
    """Ctrl-C ended a launch. `report` has what was found until then."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report


_KINDS: dict[int, type[KilnError]] = {
    2: FindingError,
    3: RefusedError,
    4: MachineError,
    5: InternalError,
}


def error_of(message: str, code: int) -> KilnError:
    """The exception of an exit status of the C interface."""
    return _KINDS.get(code, InternalError)(message)
