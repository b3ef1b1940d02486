"""Long work: Ctrl-C ends it with what was found, and a terminal sees a bar."""

from __future__ import annotations

import ctypes
from typing import Any

from ._library import c, handle
from .devices import Device
from .report import Report


def run_watched(device: Device, launches: Any, options: Any) -> Report:
    """Explore the launches; nobody else launches on the device meanwhile."""
    result = handle()
    with device._lock:
        c.explore(
            device._handle,
            launches,
            len(launches),
            ctypes.byref(options),
            ctypes.byref(result),
        )
    return Report._of(result)
