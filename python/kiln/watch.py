"""Long work: a bar on a terminal, and Ctrl-C ends it with what was found.

The library works in a thread of its own while the main thread waits, because
Python looks at signals there alone. Elsewhere the caller's thread does it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import recording
from ._library import c, handle
from .devices import Device
from .errors import Interrupted
from .report import Report

_FIRST_BAR_S = 0.5  # nobody needs to see what is over before
_STEP_S = 0.1
_WIDTH = 40


class _Bar:
    """[####    ] 12 of 48 CTAs, on stderr; wiped away in the end."""

    def __init__(self, device: Device, is_wanted: bool | None) -> None:
        self._device = device
        self._is_on = sys.stderr is not None and (
            sys.stderr.isatty() if is_wanted is None else is_wanted
        )
        self._begin = time.monotonic()
        self._columns = 0

    def draw(self) -> None:
        if not self._is_on or time.monotonic() - self._begin < _FIRST_BAR_S:
            return
        done, total = ctypes.c_uint64(), ctypes.c_uint64()
        c.device_progress(self._device._handle, ctypes.byref(done), ctypes.byref(total))
        filled = "#" * (_WIDTH * done.value // max(total.value, 1))
        told = f"{done.value} of {total.value} CTAs" if total.value else "no CTA is done yet"
        text = f"[{filled:{_WIDTH}}] {told}"
        sys.stderr.write(f"\r{text:{self._columns}}")
        sys.stderr.flush()
        self._columns = max(self._columns, len(text))

    def wipe(self) -> None:
        if self._columns:
            sys.stderr.write(f"\r{'':{self._columns}}\r")
            sys.stderr.flush()


class _Work(threading.Thread):
    """The call, and what it raised."""

    def __init__(self, call: Callable[[], None]) -> None:
        super().__init__(name="kiln", daemon=True)
        self._call = call
        self.error: BaseException | None = None
        self.is_over = threading.Event()

    def run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self.error = error
        finally:
            self.is_over.set()


def _wait(device: Device, work: _Work, bar: _Bar) -> bool:
    """Until it is over; whether Ctrl-C has ended it."""
    is_interrupted = False
    while not work.is_over.is_set():
        try:
            while not work.is_over.wait(_STEP_S):
                bar.draw()
        except KeyboardInterrupt:
            is_interrupted = True
            c.device_set_interrupted(device._handle, 1)
    return is_interrupted


def _explore_watched(device: Device, explore: Callable[[], None], progress: bool | None) -> bool:
    if threading.current_thread() is not threading.main_thread():
        explore()
        return False
    work = _Work(explore)
    bar = _Bar(device, progress)
    work.start()
    try:
        is_interrupted = _wait(device, work, bar)
    finally:
        c.device_set_interrupted(device._handle, 0)
        bar.wipe()
    work.join()
    if work.error:
        raise work.error
    return is_interrupted


def run_watched(
    device: Device, explore: Callable[[Any], None], progress: bool | None = None
) -> Report:
    """Let `explore` write its kiln_result where it is told; the report, which
    everybody who listens has been told of. The caller holds the device's lock."""
    result = handle()
    is_interrupted = _explore_watched(device, lambda: explore(ctypes.byref(result)), progress)
    report = Report._of(result)
    if report.printed and sys.stdout is not None:
        sys.stdout.write(report.printed)
    recording.record(report)
    if is_interrupted:
        raise Interrupted(str(report).rstrip(), report)
    return report
