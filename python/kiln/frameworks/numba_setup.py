"""numba-cuda."""
import types
def prepare(module: types.ModuleType) -> None:
    pass
