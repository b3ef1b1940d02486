"""Arrays of other libraries: where they lie, how far they go, what they hold.

Anything with `__array_interface__` (numpy) or `__dlpack__` (torch, jax, cupy,
...), and `array.array`. Nothing is imported for it, and nothing is copied.
"""

from __future__ import annotations

import array
import ctypes
import dataclasses
import mmap
import sys
from typing import Any

from .errors import RefusedError

_DLPACK_CPU = {1, 3, 11, 13}  # and pinned or managed memory, which the host sees
_DLPACK_DEVICES = {2: "cuda", 3: "cuda_host", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda_managed"}
_DLPACK_CUDA = {2, 3, 13}
_READ_ONLY = 1


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _DLTensor),
    ]


#: Of whose arrays nobody asks the system whether their memory is there.
_TRUSTED = {"numpy", "torch", "jax", "jaxlib", "array", "builtins", "mmap"}

#: Kiln's types by what numpy, ml_dtypes and torch call them.
_TYPES = {
    "bool": "u8",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "float8_e8m0fnu": "ue8m0",
}
#: The same by DLPack's codes and bits.
_DLPACK_TYPES = {
    (0, 8): "i8", (0, 16): "i16", (0, 32): "i32", (0, 64): "i64",
    (1, 8): "u8", (1, 16): "u16", (1, 32): "u32", (1, 64): "u64",
    (2, 16): "f16", (2, 32): "f32", (2, 64): "f64", (4, 16): "bf16", (6, 8): "u8",
    (10, 8): "e4m3", (12, 8): "e5m2", (14, 8): "ue8m0",
}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Tensor:
    """Where an array lies."""

    address: int  #: of its first element
    shape: tuple[int, ...]
    strides: tuple[int, ...]  #: in bytes
    itemsize: int
    type: str  #: as Kiln calls it; "" for one that it does not know
    base: int  #: where the memory begins that it is a view of
    base_bytes: int
    is_read_only: bool
    device: str  #: "cpu" or "cuda:0"
    owner: Any  #: keeps the memory

    @property
    def is_trusted(self) -> bool:
        """Its library is one that tells the truth of its addresses."""
        value = self.owner[0] if isinstance(self.owner, tuple) else self.owner
        return type(value).__module__.partition(".")[0] in _TRUSTED

    @property
    def low(self) -> int:
        """The address of its first byte."""
        return self.address + sum(
            stride * (size - 1) for size, stride in zip(self.shape, self.strides) if stride < 0
        )

    @property
    def nbytes(self) -> int:
        """From its first byte to its last; 0 where it has no elements."""
        if 0 in self.shape:
            return 0
        reach = sum(abs(stride) * (size - 1) for size, stride in zip(self.shape, self.strides))
        return reach + self.itemsize

    @property
    def is_contiguous(self) -> bool:
        """Its elements lie one behind the other, the last dimension innermost."""
        step = self.itemsize
        for size, stride in zip(reversed(self.shape), reversed(self.strides)):
            if size != 1 and stride != step:
                return False
            step *= size
        return True


@dataclasses.dataclass(frozen=True)
class Uninitialized:
    """An array whose contents count as not written: see `uninitialized`."""

    array: Any


def uninitialized(array: Any) -> Uninitialized:
    """Say to a launch that nothing has written the array yet, as that of
    `numpy.empty` and `torch.empty`: a kernel that reads it before it writes it
    is reported. What it holds is lost."""
    if tensor_of(array) is None:
        raise TypeError(f"{describe(array)} is no array")
    return Uninitialized(array)


def describe(value: Any) -> str:
    """A value for a message, short."""
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    if kind in (int, float, bool, str, bytes):
        text = repr(value)
        return text if len(text) < 40 else f"{text[:36]}..."
    return f"a {name}"


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _dtype_name(value: Any) -> str:
    """ "bfloat16", of numpy.dtype and torch.dtype alike."""
    dtype = getattr(value, "dtype", None)
    return str(getattr(dtype, "name", dtype)).rpartition(".")[2]


def _of_interface(value: Any, interface: Any) -> Tensor:
    given = interface.get("data")
    if not isinstance(given, tuple) or not isinstance(given[0], int):
        raise TypeError(f"__array_interface__ of {describe(value)} has no address")
    address, is_read_only = given
    shape = tuple(interface["shape"])
    if interface["typestr"][1] == "O":
        raise RefusedError(f"{describe(value)} has elements that are Python objects; a kernel takes numbers")
    if interface["typestr"][0] == ">":
        raise RefusedError(f"{describe(value)} is big-endian; convert it with .astype(x.dtype.newbyteorder('='))")
    itemsize = int(interface["typestr"][2:])
    strides = interface.get("strides")
    owner, base = value, getattr(value, "base", None)
    while base is not None and hasattr(base, "__array_interface__"):
        owner, base = base, getattr(base, "base", None)
    whole = owner.__array_interface__
    tensor = Tensor(
        address=address,
        shape=shape,
        strides=tuple(strides) if strides is not None else _strides(shape, itemsize),
        itemsize=itemsize,
        type=_TYPES.get(_dtype_name(value), ""),
        base=address,
        base_bytes=0,
        is_read_only=bool(is_read_only),
        device="cpu",
        owner=value,
    )
    if owner is value:
        return _with_base(tensor, tensor.low, tensor.nbytes)
    whole_shape = tuple(whole["shape"])
    size = int(whole["typestr"][2:])
    whole_strides = whole.get("strides")
    outer = dataclasses.replace(
        tensor,
        address=whole["data"][0],
        shape=whole_shape,
        strides=tuple(whole_strides) if whole_strides is not None else _strides(whole_shape, size),
        itemsize=size,
    )
    return _with_base(tensor, outer.low, outer.nbytes)


def _with_base(tensor: Tensor, base: int, nbytes: int) -> Tensor:
    """Of a view of that memory; of its own where it is not inside."""
    low, end = tensor.low, tensor.low + tensor.nbytes
    if not (base <= low and end <= base + nbytes):
        base, nbytes = low, tensor.nbytes
    return dataclasses.replace(tensor, base=base, base_bytes=nbytes)


_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_get_name = ctypes.pythonapi.PyCapsule_GetName
_get_name.restype, _get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]


def _capsule(value: Any) -> Any:
    """What it exports. The capsule is left unused, and frees it."""
    try:
        try:
            return value.__dlpack__(max_version=(1, 0))
        except TypeError:
            return value.__dlpack__()  # of before there were versions
    except Exception as error:  # each library has its own
        raise RefusedError(f"{describe(value)} cannot be used: {error}") from error


def _of_dlpack(value: Any) -> Tensor:
    capsule = _capsule(value)
    if type(capsule).__name__ != "PyCapsule":
        raise TypeError(f"__dlpack__ of {describe(value)} returned {describe(capsule)}, not a capsule")
    name = _get_name(capsule)
    is_read_only = False
    if name == b"dltensor_versioned":
        versioned = _DLVersioned.from_address(_get_pointer(capsule, name))
        if versioned.major != 1:
            raise RefusedError(
                f"{describe(value)} exports version {versioned.major} of DLPack; Kiln takes version 1"
            )
        given, is_read_only = versioned.tensor, bool(versioned.flags & _READ_ONLY)
    elif name == b"dltensor":
        given = _DLTensor.from_address(_get_pointer(capsule, name))
    else:
        raise TypeError(f"__dlpack__ of {describe(value)} returned a capsule of {name!r}, not of a tensor")
    bits = given.bits * given.lanes
    if bits % 8:
        raise RefusedError(
            f"{describe(value)} has elements of {bits} bits; pass it as bytes: .view(uint8)"
        )
    itemsize = bits // 8
    shape = tuple(given.shape[i] for i in range(given.ndim))
    strides = (
        tuple(given.strides[i] * itemsize for i in range(given.ndim))
        if given.strides
        else _strides(shape, itemsize)
    )
    address = (given.data or 0) + given.byte_offset
    where = "cpu"
    if given.device_type not in _DLPACK_CPU:
        where = f"{_DLPACK_DEVICES.get(given.device_type, 'device')}:{given.device_id}"
    tensor = Tensor(
        address=address,
        shape=shape,
        strides=strides,
        itemsize=itemsize,
        type=_TYPES.get(_dtype_name(value)) or _DLPACK_TYPES.get((given.code, given.bits), ""),
        base=address,
        base_bytes=0,
        is_read_only=is_read_only,
        device=where,
        owner=(value, capsule),
    )
    return _with_base(tensor, tensor.low, tensor.nbytes)


def _of_torch(value: Any) -> Tensor:
    """A tensor of torch, by its own words: DLPack has none for bool, and in
    earlier versions none for 8-bit floats."""
    if str(value.layout) != "torch.strided" or value.is_quantized or value.is_conj():
        raise RefusedError(
            f"{describe(value)} is {value.layout}, quantized or conjugated; a kernel takes plain elements"
        )
    place = value.device
    if place.type not in ("cpu", "cuda"):
        raise RefusedError(f"{describe(value)} lies on {place}; a kernel takes memory of the host or of a GPU")
    itemsize = value.element_size()
    storage = getattr(value, "untyped_storage", value.storage)()
    base = storage.data_ptr()
    return _with_base(
        Tensor(
            address=value.data_ptr(),
            shape=tuple(value.shape),
            strides=tuple(stride * itemsize for stride in value.stride()),
            itemsize=itemsize,
            type=_TYPES.get(_dtype_name(value), ""),
            base=base,
            base_bytes=0,
            is_read_only=False,
            device="cpu" if place.type == "cpu" else f"cuda:{place.index or 0}",
            owner=value,
        ),
        base,
        storage.nbytes(),
    )


def _of_buffer(value: Any) -> Tensor:
    view = memoryview(value)
    is_read_only = view.readonly
    if not view.c_contiguous:
        raise RefusedError(f"{describe(value)} is not contiguous")
    raw = view.cast("B")
    if is_read_only:
        raise RefusedError(f"{describe(value)} is read-only memory; a kernel may write to it")
    if raw.nbytes:
        address = ctypes.addressof((ctypes.c_char * raw.nbytes).from_buffer(raw))
    else:
        address = 0
    shape = (raw.nbytes // view.itemsize,)
    tensor = Tensor(
        address=address,
        shape=shape,
        strides=(view.itemsize,),
        itemsize=view.itemsize,
        type="",
        base=address,
        base_bytes=raw.nbytes,
        is_read_only=False,
        device="cpu",
        owner=(value, raw),
    )
    return tensor


def _checked(tensor: Tensor) -> Tensor:
    """With numbers that can be."""
    numbers = (tensor.address, tensor.itemsize, *tensor.shape, *tensor.strides)
    if not all(isinstance(number, int) for number in numbers):
        raise ValueError("it has numbers that are not whole")
    if tensor.itemsize < 1 or any(size < 0 for size in tensor.shape):
        raise ValueError(f"its shape is {tensor.shape}, its elements have {tensor.itemsize} bytes")
    if len(tensor.shape) != len(tensor.strides):
        raise ValueError(f"its shape is {tensor.shape}, its strides are {tensor.strides}")
    return tensor


def tensor_of(value: Any) -> Tensor | None:
    """Where an array lies; None: the value is none."""
    if isinstance(value, Uninitialized):
        return tensor_of(value.array)
    if isinstance(value, type):
        return None
    if isinstance(value, (array.array, memoryview, mmap.mmap)):
        return _of_buffer(value)
    kind = getattr(sys.modules.get("torch"), "Tensor", None)
    if isinstance(kind, type) and isinstance(value, kind) and hasattr(value, "data_ptr"):
        return _of_torch(value)
    if getattr(type(value), "__array_interface__", None) is not None:
        interface = value.__array_interface__
        if not isinstance(interface, dict) or _is_scalar(value):
            return None
        try:
            return _checked(_of_interface(value, interface))
        except (KeyError, IndexError, AttributeError, TypeError, ValueError) as error:
            if isinstance(error, RefusedError):
                raise
            raise TypeError(
                f"__array_interface__ of {describe(value)} is not understood: {error}"
            ) from error
    if getattr(type(value), "__dlpack__", None) is not None:
        return _of_dlpack(value)
    return None


def _is_scalar(value: Any) -> bool:
    """numpy.float32(1): a number, though numpy gives it an address too."""
    return hasattr(value, "item") and not hasattr(value, "ctypes")
