"""Who is told of each report: `kiln.check`, the pytest plugin, and
`python -m kiln`.

Every door of the package hands its reports to `record`: `launch` here, and what
the frameworks' drivers find.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .report import Report

Listener = Callable[[Report], None]

_lock = threading.Lock()
_listeners: list[Listener] = []
_defaults: list[dict[str, object]] = []
#: What keeps reports until somebody asks: the CUDA libraries, once they are in use.
_sources: list[Callable[[bool], Report | None]] = []


def add_source(source: Callable[[bool], Report | None]) -> None:
    """Ask it for its reports when a listener comes and goes; its argument is
    whether to keep reports from then on."""
    _sources.append(source)


def _drain(is_heard: bool) -> None:
    for source in list(_sources):
        report = source(is_heard)
        if report is not None:  # one with errors is false
            record(report)


def record(report: Report) -> None:
    """Tell everybody who listens."""
    with _lock:
        listeners = list(_listeners)
    for listener in listeners:
        listener(report)


def default_options() -> dict[str, object]:
    """The options in force where a launch brings none: what `kiln.check` and
    the marker say, the innermost last."""
    merged: dict[str, object] = {}
    with _lock:
        for options in _defaults:
            merged |= options
    return merged


@contextmanager
def listening(listener: Listener, **options: Any) -> Iterator[None]:
    """Within this block every report is told, and launches have the options."""
    _drain(True)
    with _lock:
        _listeners.append(listener)
        _defaults.append(options)
    try:
        yield
    finally:
        _drain(len(_listeners) > 1)
        with _lock:
            _listeners.remove(listener)
            _defaults.remove(options)
