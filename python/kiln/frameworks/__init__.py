"""Frameworks, unmodified, on Kiln's devices: `python -m kiln` and `activate`.

    python -m kiln script.py            Triton, numba-cuda, cuda-python, ...
    python -m kiln --interleavings 8 --configs all script.py

What these frameworks call of CUDA is Kiln's (docs/cuda.md): kernels run on the
simulator, are checked, and what is found is printed with the lines of the
Python source. Nothing of a framework is changed on the disk.
"""

from __future__ import annotations

from .activation import activate, is_active
from .command_line import is_script_line, run_script

__all__ = ["activate", "is_active", "is_script_line", "run_script"]
