"""The environment that frameworks look for CUDA in: variables, and a process
that began with them.

The loader reads LD_LIBRARY_PATH when a process begins, so that a script's
process begins twice. What a process has preloaded it finds without that; the
variables are for names that the loader does not know, and for other processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .._library import LIBRARIES

CUDA = LIBRARIES / "kiln" / "cuda"
TOOLS = Path(__file__).resolve().parent / "tools"

#: Set in a process that `enter` began again.
_ENTERED = "KILN_PYTHON_ENTERED"

#: nvcc's flags that make programs Kiln can run.
_NVCC_FLAGS = "-lineinfo -cudart shared"


def _prepend(name: str, folder: Path) -> None:
    folders = [part for part in os.environ.get(name, "").split(os.pathsep) if part]
    if str(folder) not in folders:
        os.environ[name] = os.pathsep.join([str(folder), *folders])


def set_variables() -> None:
    """For this process and those that it starts; what somebody has set stays."""
    _prepend("LD_LIBRARY_PATH", CUDA)
    os.environ["TRITON_LIBCUDA_PATH"] = str(CUDA)
    for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
        os.environ[name] = str(TOOLS / "ptxas")
    os.environ.setdefault("NVCC_APPEND_FLAGS", _NVCC_FLAGS)
    _prepend("PATH", TOOLS / "bin")


def enter() -> None:
    """Begin this process again, with the variables, unless it has them."""
    if os.environ.get(_ENTERED) == str(os.getpid()):
        return
    set_variables()
    os.environ[_ENTERED] = str(os.getpid())  # which exec keeps
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
