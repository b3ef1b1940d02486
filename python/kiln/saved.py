"""Saved kernels: PTX with a contract, which says what a launch takes."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import recording
from ._library import HEADER, c, handle, text
from .arguments import _is_float_type, _number_bytes
from .devices import Buffer, Device
from .errors import RefusedError
from .memory import Memory
from .options import make_options
from .report import Report
from .tensors import Tensor, Uninitialized, describe, tensor_of
from .watch import run_watched


@dataclasses.dataclass(frozen=True)
class Argument:
    """What a saved kernel takes at one place."""

    name: str
    kind: str  #: "buffer" or "scalar"
    type: str  #: "f16"
    shape: tuple[str, ...]  #: elements, outermost first; numbers or formulas of scalars
    is_output: bool = False
    is_workspace: bool = False  #: the launch brings it along

    def __str__(self) -> str:
        shape = f"[{', '.join(self.shape)}]" if self.kind == "buffer" else ""
        return f"{self.name}: {self.type}{shape}"


class SavedKernel:
    """A kernel with its contract: a file that `kiln gemm --save-kernel` or
    Kernel::save wrote, or what `kiln.gemm_kernel` has built."""

    def __init__(self, kernel: ctypes.c_void_p) -> None:
        self._handle = kernel
        self.name = text(c.kernel_name(kernel))
        self.ptx = text(c.kernel_ptx(kernel))
        written = ctypes.c_char_p()
        c.kernel_json(kernel, ctypes.byref(written))
        #: everything that the file has, but for the PTX
        self.contract: dict[str, Any] = json.loads(text(written.value))["contract"]
        names = [field.name for field in dataclasses.fields(Argument)]
        self.arguments: tuple[Argument, ...] = tuple(
            Argument(**{name: value for name, value in row.items() if name in names} | {"shape": tuple(row["shape"])})
            for row in self.contract["arguments"]
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        c.kernel_save(self._handle, os.fsencode(path))

    def launch(
        self,
        args: Sequence[Any] | Mapping[str, Any],
        *,
        device: Device | None = None,
        progress: bool | None = None,
        **options: object,
    ) -> Report:
        """Launch with a value for each argument of the contract, in its order or
        by its names, and say what was found. The grid follows from the contract,
        and workspaces come along."""
        device = device or Device._for(self.ptx, {})
        if not device.is_simulator:
            raise RefusedError(f"{device.name} is no simulator: kiln.gemm and its siblings launch there")
        settings = make_options(device.options | recording.default_options() | options)
        with device._lock, _Given(self, device, args) as given:
            return run_watched(
                device,
                lambda result: c.kernel_explore(
                    device._handle, self._handle, given, len(given), ctypes.byref(settings), result
                ),
                progress,
            )

    def _enqueue(self, device: Device, args: Mapping[str, Any], stream: int) -> None:
        """Put it into a stream of a GPU."""
        with device._lock, _Given(self, device, args) as given:
            c.kernel_enqueue(device._handle, self._handle, given, len(given), stream)

    def __repr__(self) -> str:
        return f"<kiln.SavedKernel {self.name}({', '.join(map(str, self.arguments))})>"

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and c is not None:
            c.kernel_free(self._handle)


def load_kernel(path: str | os.PathLike[str]) -> SavedKernel:
    """A kernel with its contract, of the file that Kernel::save, or `kiln gemm
    --save-kernel`, wrote."""
    name = os.fspath(path)
    if not isinstance(name, str):
        raise TypeError(f"a saved kernel is a file, named by a text, not by {path!r}")
    if "\0" in name:
        raise RefusedError(f"{name!r} is no name of a file")
    kernel = handle()
    c.kernel_load(os.fsencode(name), ctypes.byref(kernel))
    return SavedKernel(kernel)


def _scalar_bits(kernel: str, spec: Argument, value: Any) -> int:
    where = f"'{spec.name}' of {kernel}"
    size = 8 if spec.type in ("index", "i64", "u64", "f64") else 2 if spec.type in ("f16", "bf16", "i16", "u16") else 4
    if spec.type in ("i8", "u8", "i1"):
        size = 1
    kind = spec.type if _is_float_type(spec.type) else "i"
    data = _number_bytes(where, value, size, kind)
    if data is None:
        raise TypeError(f"{where} is {describe(value)}; it takes a number of type {spec.type}")
    return int.from_bytes(data, "little")


def _check(kernel: str, spec: Argument, tensor: Tensor, is_dense: bool) -> None:
    where = f"'{spec.name}' of {kernel}"
    if tensor.type and tensor.type != spec.type and {tensor.type, spec.type} != {"f32", "tf32"}:
        raise RefusedError(f"{where} is {spec.type}; the array has elements of {tensor.type}")
    if is_dense and not tensor.is_contiguous:
        raise RefusedError(
            f"{where} lies row behind row; the array of shape {tensor.shape} has strides of "
            f"{tensor.strides} bytes: pass x.contiguous() or numpy.ascontiguousarray(x)"
        )


class _Given:
    """The arguments of a launch; used as a context manager around it."""

    def __init__(self, kernel: SavedKernel, device: Device, args: Any, is_dense: bool = True) -> None:
        taken = [spec for spec in kernel.arguments if not spec.is_workspace]
        self._kernel = kernel
        self._memory = Memory(device)
        self._values: list[tuple[Argument, Any]] = []
        is_dense = is_dense and not isinstance(args, _Strided)
        for spec, value in zip(taken, self._in_order(taken, args)):
            if spec.kind == "buffer":
                tensor = tensor_of(value)
                if tensor is None:
                    raise TypeError(
                        f"'{spec.name}' of {kernel.name} is {describe(value)}; it takes an array ({spec})"
                    )
                _check(kernel.name, spec, tensor, is_dense)
                self._memory.add(spec.name, tensor, isinstance(value, Uninitialized))
                self._values.append((spec, tensor))
            else:
                self._values.append((spec, _scalar_bits(kernel.name, spec, value)))

    def _in_order(self, taken: list[Argument], args: Any) -> list[Any]:
        takes = ", ".join(map(str, taken))
        if isinstance(args, Mapping):
            names = [spec.name for spec in taken]
            for name in args:
                if name not in names:
                    raise TypeError(f"{self._kernel.name} takes no '{name}'; it takes {takes}")
            missing = [name for name in names if name not in args]
            if missing:
                raise TypeError(f"{self._kernel.name} lacks '{missing[0]}'; it takes {takes}")
            return [args[name] for name in names]
        if isinstance(args, (str, bytes)) or not isinstance(args, Sequence):
            raise TypeError(f"args is {describe(args)}; it takes a list, or a mapping by names: {takes}")
        if len(args) != len(taken):
            raise TypeError(f"{self._kernel.name} takes {len(taken)} arguments ({takes}); args has {len(args)}")
        return list(args)

    def __enter__(self) -> Any:
        kind = HEADER.structures["kiln_argument"]
        try:
            self._memory.open()
            given = (kind * len(self._values))()
            self._buffers: list[Buffer | None] = []
            for i, (spec, value) in enumerate(self._values):
                if spec.kind == "buffer":
                    buffer = self._memory.buffer_of(value)
                    if buffer is None:
                        raise RefusedError(f"'{spec.name}' of {self._kernel.name} has no elements")
                    self._buffers.append(buffer)
                    given[i].buffer = buffer._handle
                else:
                    given[i].type, given[i].bits = spec.type.encode(), value
        except BaseException:
            self._memory.close()
            raise
        return given

    def __exit__(self, *_: object) -> None:
        self._buffers = []
        self._memory.close()


class _Strided(dict[str, Any]):
    """Arguments whose strides the kernel was built for."""
