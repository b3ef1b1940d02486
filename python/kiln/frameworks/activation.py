"""Put Kiln's CUDA libraries where this process looks for CUDA's."""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path

from .. import recording
from ..errors import MachineError, RefusedError
from ..report import Report
from . import environment, hooks, settings

_LIBRARIES = (
    "libcudart.so.13",
    "libcudart.so.12",
    "libnvJitLink.so.13",
    "libnvJitLink.so.12",
    "libcuda.so.1",
)
_active: list[ctypes.CDLL] = []


def is_active() -> bool:
    """Whether frameworks of this process run on Kiln's devices."""
    return bool(_active)


def _foreign() -> str | None:
    """A driver or runtime of somebody else that this process has loaded."""
    pattern = re.compile(r"(/\S*/lib(cuda|cudart|nvJitLink)\.so\S*)$")
    for line in Path("/proc/self/maps").read_text().splitlines():
        found = pattern.search(line)
        if found and Path(found[1]).parent.resolve() != environment.CUDA.resolve():
            return found[1]
    return None


def driver() -> ctypes.CDLL:
    """Kiln's libcuda.so.1."""
    if not _active:
        raise RefusedError("Kiln's CUDA libraries are not in use; call kiln.activate() first")
    return _active[-1]


def activate(**options: object) -> None:
    """Let the frameworks that this process imports run on Kiln's devices.

    Call it before anything has loaded CUDA; `python -m kiln script.py` does so
    for a script as it is. Options are those of the checks
    (kiln.option_names()) and `configs`.
    """
    if _active:
        if options:
            raise RefusedError("Kiln is active already; give its options to the first activate()")
        return
    settings.put_in_environment(options)
    if foreign := _foreign():
        raise RefusedError(
            f"{foreign} was loaded before; call kiln.activate() before the first import that "
            "loads CUDA, or run the script with python -m kiln"
        )
    for name in _LIBRARIES:
        path = environment.CUDA / name
        if not path.exists():
            raise MachineError(f"{path} was not found; install kiln-gpu again")
        _active.append(ctypes.CDLL(str(path)))
    environment.set_variables()
    hooks.install()
    recording.add_source(_take_report)


def _take_report(is_heard: bool) -> Report | None:
    """Of the frameworks' launches while somebody listened; None: there were none."""
    library = driver()
    library.kilnCudaReportText.restype = ctypes.c_char_p
    library.kilnCudaFindingText.restype = ctypes.c_char_p
    library.kilnCudaFindingText.argtypes = [ctypes.c_uint64]
    library.kilnCudaTakeReport.restype = ctypes.c_uint64
    count = library.kilnCudaTakeReport()
    library.kilnCudaRecord(int(is_heard))
    if count == 0:
        return None
    formats = {
        name: library.kilnCudaReportText(name.encode()).decode(errors="replace")
        for name in ("json", "sarif", "text")
    }
    lines = []
    for index in range(len(json.loads(formats["json"])["findings"])):
        lines.append(library.kilnCudaFindingText(index).decode(errors="replace"))
    return Report(formats, lines)


def exit_status() -> int:
    """What a script that says 0 shall exit with, by what was found."""
    return int(driver().kilnCudaExitStatus())
