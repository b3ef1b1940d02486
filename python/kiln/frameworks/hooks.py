"""What happens when a framework is imported: a table, and the import hook.

A framework is prepared when it has been imported, by a function of a module of
this package that is not imported before. One that cannot run on Kiln says so
at its import.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Sequence

#: The module that prepares each, by its function `prepare(module)`.
_PREPARED = {
    "triton": "triton_setup",
    "torch": "torch_cpu",
    "numba.cuda.decorators": "numba_setup",
}

#: Why these cannot run, in one sentence.
_LINKS_RUNTIME = (
    "{} cannot run on Kiln: it is linked with NVIDIA's static CUDA runtime, which accepts "
    "NVIDIA's own driver alone"
)
_REFUSED = {"cupy": "CuPy", "warp": "Warp", "jax": "JAX"}


class _Loader(importlib.abc.Loader):
    """The loader of a framework, and then what prepares it."""

    def __init__(self, loader: importlib.abc.Loader, name: str) -> None:
        self._loader = loader
        self._name = name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        # What reads the file of a module asks its loader.
        module.__loader__ = self._loader
        if module.__spec__:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        prepare(self._name, module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self._searching: set[str] = set()

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if name in self._searching or name not in _PREPARED | _REFUSED:
            return None
        self._searching.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching.discard(name)
        if not spec or not spec.loader:
            return None
        if name in _REFUSED and _is_framework(name, spec):
            raise ImportError(_LINKS_RUNTIME.format(_REFUSED[name]), name=name)
        if name in _PREPARED:
            spec.loader = _Loader(spec.loader, name)
        return spec


def _is_framework(name: str, spec: importlib.machinery.ModuleSpec) -> bool:
    """A module of a script that is called like a framework is none; and JAX for
    the CPU alone runs as it is."""
    if not spec.submodule_search_locations:
        return False
    if name == "warp":
        return any(
            importlib.machinery.PathFinder.find_spec(f"{name}.native", [place])
            or importlib.machinery.PathFinder.find_spec(f"{name}.context", [place])
            for place in spec.submodule_search_locations
        )
    if name == "jax":
        return any(
            importlib.util.find_spec(plugin)
            for plugin in ("jax_cuda12_plugin", "jax_cuda13_plugin")
        )
    return True


def prepare(name: str, module: types.ModuleType) -> None:
    importlib.import_module(f".{_PREPARED[name]}", __package__).prepare(module)


def install() -> None:
    sys.meta_path.insert(0, _Finder())
    for name in _PREPARED:
        if name in sys.modules:
            prepare(name, sys.modules[name])
