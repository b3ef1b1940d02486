"""numba-cuda: kernels become PTX and not LTO-IR, which only NVIDIA's linker
reads. It asks for LTO where it finds an nvJitLink, unless a kernel says
otherwise."""

from __future__ import annotations

import types


def prepare(module: types.ModuleType) -> None:
    """Of numba.cuda.decorators: no LTO by default; `lto=True` is refused there."""
    if hasattr(module, "_have_nvjitlink"):
        module._have_nvjitlink = lambda: False
