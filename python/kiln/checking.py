"""`kiln.check`: every launch within a block, or within a function, is checked."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar, overload

from . import recording
from .errors import FindingError
from .options import make_options
from .report import Report

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Check(contextlib.ContextDecorator):
    """See `check`."""

    def __init__(self, **options: Any) -> None:
        make_options(options)  # refuses what is none
        self._options = options
        self._listening: contextlib.AbstractContextManager[None] | None = None
        #: of the launches so far
        self.reports: list[Report] = []

    def _recreate_cm(self) -> Check:
        return Check(**self._options)  # for each call of a function

    def __enter__(self) -> Check:
        self._listening = recording.listening(self.reports.append, **self._options)
        self._listening.__enter__()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        assert self._listening is not None
        self._listening.__exit__(None, None, None)
        if kind is None:
            raise_for_errors(self.reports)

    @property
    def ok(self) -> bool:
        """No launch so far has an error."""
        return all(report.ok for report in self.reports)


def raise_for_errors(reports: list[Report]) -> None:
    """A FindingError with the texts of those that are not right."""
    wrong = [report for report in reports if not report.ok]
    if wrong:
        raise FindingError("\n".join(str(report).rstrip() for report in wrong), wrong[0])


@overload
def check(function: _Function, /) -> _Function: ...
@overload
def check(**options: Any) -> Check: ...
def check(function: Any = None, /, **options: Any) -> Any:
    """Check every launch of a block or of a function, and raise a FindingError
    at its end where one has an error.

        with kiln.check(interleavings=8, allow=["same-value"]) as checked:
            kernel.launch(...)

        @kiln.check
        def test_add(): ...

    The options are those of docs/options.md, for launches that bring none of
    their own.
    """
    made = Check(**options)
    return made if function is None else made(function)
