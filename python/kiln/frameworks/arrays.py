"""numpy's arrays, as tensors of a framework without torch.

Triton takes what has a dtype and data_ptr(). An ndarray that a kernel is given
is seen as an Array on the way; a program that makes tensor descriptors, or asks
for strides as torch tells them, makes an Array itself.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import memory


class Array(numpy.ndarray):  # type: ignore[type-arg]
    """An ndarray with the words of a tensor; memory is shared."""

    def data_ptr(self) -> int:
        return memory.register_array(self)

    def stride(self, axis: int | None = None) -> Any:
        """In elements; `strides` is in bytes."""
        steps = tuple(step // self.itemsize for step in self.strides)
        return steps if axis is None else steps[axis]

    def numel(self) -> int:
        return self.size

    def element_size(self) -> int:
        return self.itemsize

    def is_contiguous(self) -> bool:
        return bool(self.flags.c_contiguous)


def as_tensor(array: Any, dtype: Any = None) -> Array:
    """Of an array, without a copy where it can be."""
    return numpy.asarray(array, dtype=dtype).view(Array)


def see_as_tensors(value: Any) -> Any:
    """Arrays of numpy as tensors, in tuples too; all else as it is."""
    if isinstance(value, numpy.ndarray):
        return value if hasattr(value, "data_ptr") else value.view(Array)
    if type(value) is tuple:
        return tuple(map(see_as_tensors, value))
    return value
