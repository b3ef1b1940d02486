"""Modules of PTX, their kernels, and launches."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import recording
from ._library import c, handle, structure, text
from .arguments import BITS, Arguments, Parameter
from .devices import Buffer, Device
from .errors import RefusedError
from .options import make_options
from .report import Report
from .watch import run_watched

Shape = int | Sequence[int]


def _shape(name: str, value: Shape) -> tuple[int, int, int]:
    sizes = tuple(value) if isinstance(value, Sequence) else (value,)
    if not 1 <= len(sizes) <= 3 or isinstance(value, (str, bytes)):
        raise RefusedError(f"{name} is {value!r}; it takes one to three whole numbers")
    numbers = []
    for size in sizes:
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise TypeError(f"{name} is {value!r}; it takes one to three whole numbers")
        number = size.__index__()
        if not 1 <= number < 2**32:
            raise RefusedError(f"{name} is {value!r}; each of its sizes is from 1 to 2**32 - 1")
        numbers.append(number)
    return (numbers + [1, 1])[0], (numbers + [1, 1])[1], (numbers + [1, 1])[2]


def _parameter(module: Any, entry: bytes, index: int) -> Parameter:
    told = structure("kiln_parameter")
    c.module_parameter(module, entry, index, ctypes.byref(told))
    kind, type = text(told.kind), text(told.type)
    # A number whose bytes are read one by one has a type that is not its own.
    if kind == "number" and BITS.get(type) != 8 * told.size:
        type = ""
    return Parameter(index, text(told.name), kind, type, told.size)


class Kernel:
    """An entry of a module."""

    def __init__(self, module: Module, name: str) -> None:
        self.module = module
        self.name = name
        entry = name.encode()
        count = ctypes.c_size_t()
        c.module_parameters(module._handle, entry, ctypes.byref(count), None, 0)
        #: what the entry takes
        self.parameters: tuple[Parameter, ...] = tuple(
            _parameter(module._handle, entry, i) for i in range(count.value)
        )

    @property
    def registers(self) -> int:
        """Per thread: ptxas' count where one is found, else a bound."""
        count = ctypes.c_int()
        c.module_registers(self.module._handle, self.name.encode(), ctypes.byref(count))
        return count.value

    def launch(
        self,
        grid: Shape,
        block: Shape,
        args: Sequence[Any] | Mapping[str, Any] = (),
        *,
        cluster: Shape = 1,
        shared: int = 0,
        cooperative: bool = False,
        progress: bool | None = None,
        **options: object,
    ) -> Report:
        """Launch, in several interleavings, and say what was found.

        `args` has a value for each parameter of the entry: an array (numpy,
        torch, anything with `__array_interface__` or DLPack), a number, a
        struct (bytes, ctypes, a dataclass) or a `kiln.TensorMap`; with names,
        which findings use, where it is a mapping. What the kernel writes is in
        the arrays afterwards, as the first interleaving left it. `shared` is
        dynamic shared memory in bytes. The options are those of docs/options.md.
        A bar shows how far it is, on a terminal or where `progress` is true.
        """
        device = self.module.device
        launch = structure("kiln_launch")
        launch.module = self.module._handle
        launch.entry = self.name.encode()
        launch.grid[:] = _shape("grid", grid)
        launch.block[:] = _shape("block", block)
        launch.cluster[:] = _shape("cluster", cluster)
        if isinstance(shared, bool) or not hasattr(shared, "__index__"):
            raise TypeError(f"shared is {shared!r}; it takes a number of bytes")
        if not 0 <= shared.__index__() < 2**32:
            raise RefusedError(f"shared is {shared!r}; it takes a number of bytes from 0 on")
        launch.dynamic_smem_bytes = shared.__index__()
        launch.is_cooperative = bool(cooperative)
        launches = (ctypes.POINTER(type(launch)) * 1)(ctypes.pointer(launch))
        settings = make_options(device.options | recording.default_options() | options)
        with device._lock, Arguments(device, self, args) as parameters:
            launch.parameters = parameters
            return run_watched(
                device,
                lambda result: c.explore(device._handle, launches, 1, ctypes.byref(settings), result),
                progress,
            )

    def __repr__(self) -> str:
        return f"<kiln.Kernel {self.name}>"


class Module:
    """PTX that a device has taken in."""

    def __init__(self, device: Device, texts: Sequence[bytes]) -> None:
        self.device = device
        self._handle = handle()
        array = (ctypes.c_char_p * len(texts))(*texts)
        c.module_load(device._handle, array, len(texts), ctypes.byref(self._handle))

    @classmethod
    def _of_image(cls, device: Device, image: bytes) -> Module:
        """The PTX of a fat binary that the device runs."""
        module = cls.__new__(cls)
        module.device = device
        module._handle = handle()
        c.module_load_image(device._handle, image, len(image), ctypes.byref(module._handle))
        return module

    def variable(self, name: str) -> Buffer:
        """A variable of the module (__device__, __constant__), to read and write."""
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        c.module_variable(self._handle, name.encode(), ctypes.byref(address), ctypes.byref(size))
        return self.device._wrap(address.value, size.value, self)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its entries."""
        count = c.module_entry_count(self._handle)
        return tuple(text(c.module_entry_name(self._handle, i)) for i in range(count))

    def kernel(self, name: str | None = None) -> Kernel:
        """The entry of that name; without one, the only one."""
        names = self.kernels
        if name is None and len(names) == 1:
            name = names[0]
        if name not in names:
            asked = "name one of its entries" if name is None else f"there is no entry '{name}'"
            known = ", ".join(names) or "none"
            raise RefusedError(f"{asked}; the module has {known}")
        return Kernel(self, name)

    def __getitem__(self, name: str) -> Kernel:
        return self.kernel(name)

    def __repr__(self) -> str:
        return f"<kiln.Module: {', '.join(self.kernels)}>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and c is not None:
            c.module_free(self._handle)


_FATBIN = b"\x50\xed\x55\xba"
_ELF = b"\x7fELF"


def load(
    source: str | bytes | os.PathLike[str] | Sequence[str | bytes | os.PathLike[str]],
    device: Device | None = None,
    **options: object,
) -> Module:
    """PTX as text, the bytes of a fat binary, or the path of a file with either;
    several texts are linked.

    Without a device it is simulated on the GPU that the PTX is for.
    """
    if not isinstance(source, (str, bytes)) and isinstance(source, Sequence):
        if not source:
            raise RefusedError("a module is made of at least one text of PTX, not of none")
        texts = [_bytes_of(one) for one in source]
    else:
        texts = [_bytes_of(source)]
    first = texts[0]
    if first.startswith(_ELF):
        raise RefusedError(
            "this is machine code (a cubin), of which nothing can be executed; compile to PTX: nvcc -ptx"
        )
    if len(texts) == 1 and first.lstrip()[:1] == b"{":
        raise RefusedError("this is a saved kernel, not PTX: kiln.load_kernel loads it")
    if first.startswith(_FATBIN):
        return Module._of_image(device or Device("sim", **options), first)
    return Module(device or Device._for(first, options), texts)


def _is_path(source: Any) -> bool:
    if isinstance(source, os.PathLike):
        return True
    if isinstance(source, bytes):
        return b"\n" not in source and not source.startswith((_FATBIN, _ELF))
    return isinstance(source, str) and "\n" not in source


def _bytes_of(source: Any) -> bytes:
    if not isinstance(source, (str, bytes, os.PathLike)):
        raise TypeError(f"PTX is a text or the path of a file, not {type(source).__name__}")
    if not _is_path(source):
        return source.encode() if isinstance(source, str) else source  # type: ignore[return-value]
    path = Path(os.fsdecode(source))
    try:
        return path.read_bytes()
    except ValueError as error:  # a zero byte
        raise RefusedError(f"{os.fsdecode(source)!r} is neither PTX nor the path of a file: {error}") from None
