"""Kiln: PTX kernels checked on the CPU.

    import kiln

    report = kiln.load("kernel.ptx").kernel("add").launch(
        grid=4, block=128, args=[x, y, out, n])
    print(report)

`python -m kiln script.py` runs a program of Triton, numba-cuda or another
framework on Kiln's devices; docs/python.md has it all.
"""

from .checking import Check, check
from .devices import Buffer, Device
from .errors import (
    FindingError,
    InternalError,
    Interrupted,
    KilnError,
    MachineError,
    RefusedError,
)
from .kernels import attention, build, gemm, grouped_gemm
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
    Waiting,
    explain,
    finding_ids,
)
from .saved import Argument, SavedKernel, load_kernel
from .tensor_map import TensorMap
from .tensors import uninitialized
from .version import __version__

__all__ = [
    "Argument",
    "Buffer",
    "Check",
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
    "SavedKernel",
    "TensorMap",
    "Waiting",
    "__version__",
    "activate",
    "attention",
    "build",
    "check",
    "explain",
    "finding_ids",
    "gemm",
    "grouped_gemm",
    "load",
    "load_kernel",
    "option_names",
    "uninitialized",
]


def activate(**options: object) -> None:
    """Let the frameworks of this process find Kiln's CUDA libraries: see
    `kiln.frameworks`."""
    from .frameworks import activate

    activate(**options)
