"""Arguments of a launch: Python values as the bytes of an entry's parameters."""

from __future__ import annotations

import ctypes
import dataclasses
import struct
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .devices import Device
from .errors import RefusedError
from .memory import Memory
from .tensor_map import TensorMap
from .tensors import Tensor, Uninitialized, describe, tensor_of

if TYPE_CHECKING:
    from .modules import Kernel

_POINTER_BYTES = 8
_MAP_BYTES = 128
ACCEPTED = (
    "an array (numpy, torch, anything with __array_interface__ or DLPack), a number, a struct "
    "(bytes, ctypes, a dataclass), a kiln.TensorMap, or None for a null pointer"
)


@dataclasses.dataclass(frozen=True)
class Parameter:
    """What an entry takes at one place."""

    index: int
    name: str  #: as the PTX has it; "" where it does not tell
    kind: str  #: "pointer", "number", "tensor_map", "struct"
    type: str  #: of a number, or of elements: "f32"; "" where the text does not tell
    size: int  #: bytes

    def __str__(self) -> str:
        if self.kind == "number":
            return f"{self.type or 'number'} of {self.size} bytes"
        return {"pointer": "pointer", "tensor_map": "tensor map"}.get(
            self.kind, f"struct of {self.size} bytes"
        )


# ---- numbers ----


def _bfloat16(value: float) -> bytes:
    """Rounded to the nearest, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return struct.pack("<H", (bits >> 16) | 0x40)
    return struct.pack("<H", ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) & 0xFFFF)


def _packed(format: str) -> Callable[[float], bytes]:
    return lambda value: struct.pack(format, value)


_FLOATS: dict[str, Callable[[float], bytes]] = {
    "f16": _packed("<e"),
    "bf16": _bfloat16,
    "f32": _packed("<f"),
    "tf32": _packed("<f"),
    "f64": _packed("<d"),
}
#: Of the numbers that a parameter can be.
BITS = {f"{kind}{bits}": bits for kind in "iuf" for bits in (8, 16, 32, 64)} | {"bf16": 16, "tf32": 32}
_FLOATS_BY_SIZE = {2: "f16", 4: "f32", 8: "f64"}


def _float_bytes(where: str, value: float, kind: str) -> bytes:
    try:
        return _FLOATS[kind](value)
    except (OverflowError, struct.error):
        raise RefusedError(f"{where} is {value!r}, which is beyond the largest {kind}") from None


def _whole_bytes(where: str, value: int, size: int) -> bytes:
    bits = 8 * size
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise RefusedError(
            f"{where} is {value}; the parameter has {size} bytes and takes {-(1 << (bits - 1))} to "
            f"{(1 << bits) - 1}"
        )
    return (value % (1 << bits)).to_bytes(size, "little")


def _is_float_type(kind: str) -> bool:
    return kind in _FLOATS


def _number_bytes(where: str, value: Any, size: int, kind: str) -> bytes | None:
    """A number as the parameter has it; None: the value is none."""
    if isinstance(value, (complex, type)):
        return None
    if getattr(value, "shape", ()) != ():
        return None
    if getattr(getattr(value, "dtype", None), "kind", "") == "b":
        value = bool(value)
    if hasattr(value, "tobytes") and hasattr(value, "dtype") and getattr(value, "itemsize", 0) == size:
        # A scalar of numpy brings its type along.
        is_float = getattr(value.dtype, "kind", "") in "fV"
        if not kind or is_float == _is_float_type(kind):
            return bytes(value.tobytes())
    if hasattr(value, "__index__"):
        number = value.__index__()
        if _is_float_type(kind):
            return _float_bytes(where, float(number), kind)
        return _whole_bytes(where, number, size)
    if not hasattr(value, "__float__") or isinstance(value, (str, bytes)):
        return None
    if kind and not _is_float_type(kind):
        raise TypeError(f"{where} is {value!r}; it takes a whole number ({kind})")
    wanted = kind or _FLOATS_BY_SIZE.get(size, "")
    if not wanted:
        raise TypeError(f"{where} is {value!r}; the parameter has {size} bytes, and no float has that many")
    return _float_bytes(where, float(value), wanted)


# ---- structs ----

#: The C type of a dataclass's field by its annotation: bytes, and the type.
_ANNOTATIONS: dict[Any, tuple[int, str]] = {
    bool: (1, "u8"),
    int: (4, "i32"),
    float: (4, "f32"),
    ctypes.c_bool: (1, "u8"),
    ctypes.c_float: (4, "f32"),
    ctypes.c_double: (8, "f64"),
}


def _annotated(kind: Any, where: str) -> tuple[int, str]:
    if kind in _ANNOTATIONS:
        return _ANNOTATIONS[kind]
    if isinstance(kind, type) and issubclass(kind, ctypes._SimpleCData):
        return ctypes.sizeof(kind), "i64"
    name, size = getattr(kind, "__name__", ""), getattr(kind, "itemsize", None)
    if name.startswith(("int", "uint", "float")) and name.lstrip("uintfloa").isdigit():
        bits = int(name.lstrip("uintfloa"))
        return bits // 8, f"{'f' if name.startswith('float') else 'i'}{bits}"
    raise TypeError(
        f"{where} is a number, and is annotated {kind!r}, which tells no C type; use int or float (32 "
        f"bits), one of ctypes, such as ctypes.c_int64, or one of numpy{'' if size is None else ''}"
    )


def _hints(value: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(type(value))
    except Exception:  # names that cannot be resolved where the class is
        return {field.name: field.type for field in dataclasses.fields(value)}


def _is_record(value: Any) -> bool:
    return (
        dataclasses.is_dataclass(value)
        and not isinstance(value, type)
        and not isinstance(value, (TensorMap, Uninitialized))
    )


class _Encoder:
    """Values as bytes, with arrays where the device has them."""

    def __init__(self, device: Device, memory: Memory) -> None:
        self._device = device
        self._memory = memory

    def address(self, tensor: Tensor) -> bytes:
        return self._memory.address_of(tensor).to_bytes(_POINTER_BYTES, "little")

    def map(self, value: TensorMap) -> bytes:
        return value.encode(self._device, self._memory.address_of(value.tensor()))

    def record(self, value: Any, where: str) -> tuple[bytes, int]:
        """A dataclass as C lays it out: its bytes and its alignment."""
        data, most = bytearray(), 1
        hints = _hints(value)
        for field in dataclasses.fields(value):
            part, alignment = self._field(
                getattr(value, field.name), hints[field.name], f"{where}.{field.name}"
            )
            data += bytes(-len(data) % alignment) + part
            most = max(most, alignment)
        return bytes(data + bytes(-len(data) % most)), most

    def _field(self, value: Any, kind: Any, where: str) -> tuple[bytes, int]:
        if value is None:
            return bytes(_POINTER_BYTES), _POINTER_BYTES
        if isinstance(value, TensorMap):
            return self.map(value), 64
        if _is_record(value):
            return self.record(value, where)
        tensor = tensor_of(value)
        if tensor is not None:
            return self.address(tensor), _POINTER_BYTES
        if isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
            return bytes(value), ctypes.alignment(type(value))
        if isinstance(value, (bytes, bytearray)):
            return bytes(value), 1
        size, name = _annotated(kind, where)
        part = _number_bytes(where, value, size, name)
        if part is None:
            raise TypeError(f"{where} is {describe(value)}; a field takes {ACCEPTED}")
        return part, size

    def parameter(self, value: Any, parameter: Parameter, where: str) -> bytes:
        """The bytes of a parameter, as many as it has."""
        if value is None:
            given, what = bytes(_POINTER_BYTES), "a null pointer"
        elif isinstance(value, TensorMap):
            given, what = self.map(value), "a tensor map"
        elif isinstance(value, (bytes, bytearray)):
            given, what = bytes(value), "the struct"
        elif isinstance(value, (ctypes.Structure, ctypes.Union, ctypes.Array, ctypes._SimpleCData)):
            given, what = bytes(value), "the struct"
        elif _is_record(value):
            given, what = self.record(value, where)[0], "the struct"
        elif (tensor := tensor_of(value)) is not None:
            given, what = self.address(tensor), "an array, which is a pointer,"
        else:
            kind = {"number": parameter.type, "pointer": "u64"}.get(parameter.kind, "")
            number = None
            if parameter.size in (1, 2, 4, 8):
                number = _number_bytes(where, value, parameter.size, kind)
            elif hasattr(value, "__index__") or isinstance(value, float):
                raise TypeError(f"{where} is {value!r}; the parameter is a {parameter}")
            if number is None:
                raise TypeError(f"{where} is {describe(value)}; a parameter takes {ACCEPTED}")
            return number
        if len(given) != parameter.size:
            raise RefusedError(
                f"{where}: {what} has {len(given)} bytes; the parameter is a {parameter}"
                + ("" if str(parameter.size) in str(parameter) else f" of {parameter.size} bytes")
            )
        return given


def _arrays(value: Any, name: str) -> Iterator[tuple[str, Tensor, bool]]:
    """The arrays in a value, with what findings call them; and whether nothing
    counts as written."""
    if isinstance(value, TensorMap):
        yield name, value.tensor(), isinstance(value.array, Uninitialized)
    elif _is_record(value):
        for field in dataclasses.fields(value):
            yield from _arrays(getattr(value, field.name), f"{name}.{field.name}")
    elif isinstance(value, (bytes, bytearray, ctypes.Array)):
        return
    elif (tensor := tensor_of(value)) is not None:
        yield name, tensor, isinstance(value, Uninitialized)


def _named(kernel: Kernel, args: Any) -> list[tuple[str, Any]]:
    """Each value with its name, in the order of the parameters."""
    parameters = kernel.parameters
    if isinstance(args, Mapping):
        if any(not isinstance(name, str) for name in args):
            raise TypeError("args is a mapping whose keys are not all texts; the keys are names")
        names = [parameter.name for parameter in parameters]
        if args and set(args) == set(names):
            return [(name, args[name]) for name in names]
        values = list(args.items())
    elif isinstance(args, (str, bytes, bytearray)) or not isinstance(args, Sequence):
        raise TypeError(f"args is {describe(args)}; it takes a list with a value for each parameter")
    else:
        values = [(f"args[{i}]", value) for i, value in enumerate(args)]
    if len(values) != len(parameters):
        takes = ", ".join(f"{p.name + ': ' if p.name else ''}{p}" for p in parameters)
        raise TypeError(
            f"{kernel.name} takes {len(parameters)} parameters{f' ({takes})' if takes else ''}; "
            f"args has {len(values)}"
        )
    return values


class Arguments:
    """The parameters of one launch, and the memory that they point to; used as
    a context manager around the launch."""

    def __init__(
        self, device: Device, kernel: Kernel, args: Sequence[Any] | Mapping[str, Any]
    ) -> None:
        self._memory = Memory(device)
        self._encoder = _Encoder(device, self._memory)
        self._values = _named(kernel, args)
        self._kernel = kernel
        for name, value in self._values:
            for array_name, tensor, is_fresh in _arrays(value, name):
                self._memory.add(array_name, tensor, is_fresh)

    def __enter__(self) -> Any:
        """The pointers that the C interface takes."""
        try:
            self._memory.open()
            self._parts = [
                ctypes.create_string_buffer(
                    self._encoder.parameter(value, parameter, name), parameter.size
                )
                for (name, value), parameter in zip(self._values, self._kernel.parameters)
            ]
        except BaseException:
            self._memory.close()
            raise
        pointers = (ctypes.c_void_p * max(len(self._parts), 1))()
        for i, part in enumerate(self._parts):
            pointers[i] = ctypes.addressof(part)
        self._pointers = pointers
        return ctypes.cast(pointers, ctypes.POINTER(ctypes.c_void_p))

    def __exit__(self, *_: object) -> None:
        self._memory.close()
