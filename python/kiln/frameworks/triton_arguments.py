"""From the arguments of a Triton kernel to the bytes of its parameters.

Triton says what each is: "*fp32" a pointer, "i32" a scalar, "constexpr"
nothing at run time, "tensordesc<...>" a tensor descriptor: a tensor map, or
where the target has none base, shape and strides; a tuple of types a tuple.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import cuda, memory

_INTEGERS = {
    "i1": ctypes.c_int8,
    "i8": ctypes.c_int8,
    "i16": ctypes.c_int16,
    "i32": ctypes.c_int32,
    "i64": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
}


def _bf16(value: float) -> int:
    """Rounded to nearest even, as Triton does."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _fp16(value: float) -> int:
    try:
        (bits,) = struct.unpack("<H", struct.pack("<e", value))
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00
    return bits


_FLOATS: dict[str, Callable[[float], Any]] = {
    "fp16": lambda value: ctypes.c_uint16(_fp16(value)),
    "bf16": lambda value: ctypes.c_uint16(_bf16(value)),
    "fp32": ctypes.c_float,
    "f32": ctypes.c_float,
    "fp64": ctypes.c_double,
}


class _Image(ctypes.Structure):
    """A tensor map."""

    _fields_ = [("words", ctypes.c_uint64 * 16)]


#: Triton's numbers of element types in descriptors, as the driver has them.
_TYPES = {8: 10, 9: 8, 10: 9}
_TF32 = 11


def _tensor_map(descriptor: Any, meta: dict[str, Any]) -> _Image:
    """What the driver makes of a descriptor for tiles."""
    if meta.get("is_im2col"):
        raise NotImplementedError(
            "tensor descriptors in im2col mode are not simulated (cuTensorMapEncodeIm2col)"
        )
    shape = list(descriptor.shape)
    if meta["fp4_padded"]:
        shape[-1] *= 2
    rank = len(shape)
    kind = _TYPES.get(meta["elem_type"], meta["elem_type"])
    if getattr(descriptor, "round_f32_to_tf32", False):
        kind = _TF32
    strides = [int(stride) * meta["elem_size"] for stride in descriptor.strides[:-1]]
    # Aligned as the driver asks for it.
    room = ctypes.create_string_buffer(ctypes.sizeof(_Image) + 128)
    image = _Image.from_buffer(room, -ctypes.addressof(room) % 128)
    cuda.call(
        "cuTensorMapEncodeTiled",
        ctypes.byref(image),
        kind,
        rank,
        ctypes.c_void_p(memory.address_of(descriptor.base)),
        (ctypes.c_uint64 * rank)(*map(int, reversed(shape))),
        (ctypes.c_uint64 * max(rank - 1, 1))(*reversed(strides)),
        (ctypes.c_uint32 * rank)(*map(int, reversed(meta["block_size"]))),
        (ctypes.c_uint32 * rank)(*([1] * rank)),
        0,
        meta["swizzle"],
        2,  # 128 bytes at a time, as Triton asks for
        1 if getattr(descriptor, "padding", "zero") == "nan" else 0,
    )
    return image


def _descriptor(kind: str, value: Any, meta: dict[str, Any] | None) -> Iterator[Any]:
    strides = [int(stride) for stride in value.strides]
    shape = [int(length) for length in value.shape]
    if meta is None:
        yield ctypes.c_uint64(memory.address_of(value.base))
        yield from (ctypes.c_int64(number) for number in shape + strides)
        yield ctypes.c_int8(getattr(value, "padding", "zero") == "nan")
        if hasattr(value, "round_f32_to_tf32"):
            yield ctypes.c_int8(bool(value.round_f32_to_tf32))
    else:
        yield _tensor_map(value, meta)
    yield from (ctypes.c_int32(length) for length in shape)
    yield from (ctypes.c_int64(stride) for stride in strides)


class Signature:
    """The types of a kernel's arguments, in order."""

    def __init__(self, types: Sequence[Any], descriptors: Sequence[dict[str, Any]] | None) -> None:
        self._types = list(types)
        self._descriptors = descriptors

    def parameters(self, arguments: Sequence[Any]) -> list[Any]:
        """What the kernel takes for them, as ctypes objects."""
        metas = iter(self._descriptors or ())
        return list(self._flatten(self._types, arguments, metas))

    def _flatten(
        self, kinds: Sequence[Any], values: Sequence[Any], metas: Iterator[dict[str, Any]]
    ) -> Iterator[Any]:
        for kind, value in zip(kinds, values):
            if isinstance(kind, tuple):
                yield from self._flatten(kind, value, metas)
            elif kind == "constexpr":
                continue
            elif kind.startswith("tensordesc"):
                yield from _descriptor(kind, value, next(metas, None))
            elif kind.startswith("*") or kind == "nvTmaDesc":
                yield ctypes.c_uint64(memory.address_of(value))
            elif kind in _FLOATS:
                yield _FLOATS[kind](float(value))
            elif kind in _INTEGERS:
                yield _INTEGERS[kind](int(value))
            else:
                raise TypeError(f"Kiln knows no parameter of Triton's type {kind}")


def kernel_target(arch: Any) -> str:
    """"sm_90a" of a number or a name."""
    found = re.search(r"\d+", str(arch))
    return f"sm_{found[0]}" if found else str(arch)
