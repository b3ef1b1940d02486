"""torch on the CPU: what programs ask of torch.cuda."""
from __future__ import annotations
import types
from typing import Any
def prepare(module: types.ModuleType) -> None:
    pass
def interface() -> Any:
    import torch
    return torch.cuda
