"""Triton and Gluon: what is set when `triton` has been imported."""

from __future__ import annotations

import re
import sys
import types
from importlib.util import find_spec
from typing import Any

from ..errors import MachineError

#: The first version whose launches are as this package makes them.
_OLDEST = (3, 6)


def _check_version(module: types.ModuleType) -> None:
    numbers = tuple(map(int, re.findall(r"\d+", module.__version__)[:2]))
    if numbers < _OLDEST:
        raise MachineError(
            f"Triton {module.__version__} is too old for Kiln, which runs kernels of Triton "
            f"{'.'.join(map(str, _OLDEST))} and newer"
        )


class _NoCublas:
    """In the place of Triton's handle of cuBLAS, which would call into a library
    of machine code and end the process."""

    def __init__(self, *_: Any) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        raise NotImplementedError(
            f"{name} of cuBLAS cannot run on Kiln: NVIDIA's libraries hold machine code"
        )


def _replace_cublas() -> None:
    from triton._C import libtriton

    cublas = getattr(getattr(libtriton, "nvidia", None), "cublas", None)
    if hasattr(cublas, "CublasLt"):
        cublas.CublasLt = _NoCublas


def _see_arrays() -> None:
    """Let kernels take arrays of numpy."""
    if not find_spec("numpy"):
        return
    from triton.runtime.jit import JITFunction

    own_run = JITFunction.run

    def run(self: Any, *arguments: Any, **keywords: Any) -> Any:
        if "numpy" in sys.modules:
            from .arrays import see_as_tensors

            arguments = tuple(map(see_as_tensors, arguments))
            keywords = {name: see_as_tensors(value) for name, value in keywords.items()}
        return own_run(self, *arguments, **keywords)

    JITFunction.run = run


def prepare(module: types.ModuleType) -> None:
    """Let kernels of Triton be launched on Kiln's device."""
    _check_version(module)
    from triton.runtime import driver

    from . import triton_tuning
    from .triton_driver import KilnDriver

    driver.set_active(KilnDriver())
    triton_tuning.prepare()
    _see_arrays()
    _replace_cublas()
