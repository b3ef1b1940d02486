"""Tensor maps: what the TMA unit must know to copy boxes of a tensor."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any

from ._library import c, structure
from .devices import Device
from .errors import RefusedError
from .tensors import Tensor, describe, tensor_of

_MAP_BYTES = 128


def _numbers(name: str, values: Sequence[int], rank: int) -> tuple[int, ...]:
    try:
        numbers = tuple(value.__index__() for value in values)
    except (TypeError, AttributeError):
        raise TypeError(f"{name} of a tensor map is {values!r}; it takes whole numbers") from None
    if len(numbers) != rank:
        raise RefusedError(f"{name} of a tensor map has {len(numbers)} numbers; the tensor has {rank} dimensions")
    for number in numbers:
        if not 0 <= number < 2**32:
            raise RefusedError(f"{name} of a tensor map is {values!r}; each is from 0 to 2**32 - 1")
    return numbers


@dataclasses.dataclass(frozen=True)
class TensorMap:
    """A map of an array, for a parameter of 128 bytes (CUtensorMap).

    `box` is what one copy moves, in elements, in the order of the array's shape:
    the innermost dimension comes last. What cuTensorMapEncodeTiled refuses is
    refused with its values.
    """

    array: Any
    box: Sequence[int]
    swizzle: int = 0  #: bytes: 0, 32, 64 or 128
    interleave: int = 0  #: bytes: 0, 16 or 32
    l2_promotion: int = 128  #: bytes: 0, 64, 128 or 256
    element_strides: Sequence[int] | None = None  #: None: all 1
    fills_with_nan: bool = False  #: what lies outside reads as NaN, not 0
    type: str = ""  #: of elements, where the array does not tell: "e4m3"

    def tensor(self) -> Tensor:
        tensor = tensor_of(self.array)
        if tensor is None:
            raise TypeError(f"a tensor map is of an array, not of {describe(self.array)}")
        return tensor

    def encode(self, device: Device, address: int) -> bytes:
        """As kernels read it, of an array that lies there on the device."""
        tensor = self.tensor()
        rank = len(tensor.shape)
        if not 1 <= rank <= 5:
            raise RefusedError(f"the array of a tensor map has {rank} dimensions; 1 to 5 are possible")
        kind = self.type or tensor.type
        if not kind:
            raise RefusedError("the type of the tensor map's elements is not known; give it: type='e4m3'")
        if any(stride < 0 for stride in tensor.strides) or tensor.strides[-1] != tensor.itemsize:
            raise RefusedError(
                f"the array of a tensor map has strides of {tensor.strides} bytes; the innermost is of "
                f"one element, {tensor.itemsize} bytes, and none is negative"
            )
        made = structure("kiln_tensor_map")
        made.type = kind.encode()
        made.address = address
        made.rank = rank
        box = _numbers("box", self.box, rank)
        steps = _numbers("element_strides", self.element_strides or (1,) * rank, rank)
        for i in range(rank):
            made.dims[i] = tensor.shape[rank - 1 - i]
            made.box[i] = box[rank - 1 - i]
            made.element_strides[i] = steps[rank - 1 - i]
            if i:
                made.strides_bytes[i - 1] = tensor.strides[rank - 1 - i]
        for field, name in (
            ("swizzle_bytes", "swizzle"),
            ("interleave_bytes", "interleave"),
            ("l2_promotion_bytes", "l2_promotion"),
        ):
            setattr(made, field, _numbers(name, (getattr(self, name),), 1)[0])
        made.fills_with_nan = bool(self.fills_with_nan)
        encoded = ctypes.create_string_buffer(_MAP_BYTES)
        c.tensor_map_encode(device._handle, ctypes.byref(made), encoded)
        return encoded.raw
