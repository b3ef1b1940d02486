"""Kiln: PTX kernels checked on the CPU.

    import kiln

    report = kiln.load("kernel.ptx").kernel("add").launch(
        grid=4, block=128, args=[x, y, out, n])
    print(report)

`python -m kiln script.py` runs a program of Triton, numba-cuda or another
framework on Kiln's devices; docs/python.md has it all.
"""

from .devices import Buffer, Device
from .errors import (
    FindingError,
    InternalError,
    Interrupted,
    KilnError,
    MachineError,
    RefusedError,
)
from .modules import Kernel, Module, load
from .options import option_names
from .report import (
    Comparison,
    Explanation,
    Finding,
    Frame,
    Launch,
    Other,
    Report,
    explain,
    finding_ids,
)
from .tensor_map import TensorMap
from .tensors import uninitialized
from .version import __version__

__all__ = [
    "Buffer",
    "Comparison",
    "Device",
    "Explanation",
    "Finding",
    "FindingError",
    "Frame",
    "InternalError",
    "Interrupted",
    "Kernel",
    "KilnError",
    "Launch",
    "MachineError",
    "Module",
    "Other",
    "RefusedError",
    "Report",
    "TensorMap",
    "__version__",
    "activate",
    "explain",
    "finding_ids",
    "load",
    "option_names",
    "uninitialized",
]


def activate(**options: object) -> None:
    """Let the frameworks of this process find Kiln's CUDA libraries: see
    `kiln.frameworks`."""
    from .frameworks import activate

    activate(**options)
