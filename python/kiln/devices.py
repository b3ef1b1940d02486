"""Devices and their memory."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from ._library import c, handle, text
from .errors import RefusedError
from .options import make_options


class Device:
    """A simulator, or a GPU.

    `id` is "sim", "cuda", "cuda:1" or "auto"; options are those of the checks
    (docs/options.md), which hold for every launch that brings none of its own.
    A simulator of no GPU in particular is an H200; `gpu="rtx5090"` names one.
    """

    def __init__(self, id: str = "sim", **options: object) -> None:
        if not isinstance(id, str):
            raise TypeError(f"a device is named by a text such as 'sim', not by {id!r}")
        self._handle = handle()
        self.id = id
        self.options = options
        self._lock = threading.RLock()  # launches take turns
        c.device_open_with(id.encode(), make_options(options), ctypes.byref(self._handle))
        c.device_set_quiet(self._handle, 1)

    @classmethod
    def _for(cls, ptx: str | bytes, options: dict[str, object]) -> Device:
        """A simulator of the GPU that the PTX is for, or that the options name."""
        device = cls.__new__(cls)
        device._handle = handle()
        device.id = "sim"
        device.options = options
        device._lock = threading.RLock()
        encoded = ptx.encode() if isinstance(ptx, str) else ptx
        c.device_open_for(encoded, make_options(options), ctypes.byref(device._handle))
        c.device_set_quiet(device._handle, 1)
        return device

    @property
    def name(self) -> str:
        """ "sim (NVIDIA H200)" """
        return text(c.device_name(self._handle))

    def synchronize(self) -> None:
        """Wait for everything that was launched."""
        c.device_synchronize(self._handle)

    def allocate(self, bytes: int, name: str = "") -> Buffer:
        """Fresh memory, which nothing has written yet."""
        if isinstance(bytes, bool) or not hasattr(bytes, "__index__"):
            raise TypeError(f"a buffer has a number of bytes, not {bytes!r}")
        if not 0 <= bytes.__index__() < 2**63:
            raise RefusedError(f"a buffer of {bytes} bytes cannot be; it has from 0 to 2**63 - 1")
        buffer = handle()
        c.buffer_allocate(self._handle, bytes, ctypes.byref(buffer))
        return Buffer(self, buffer, name=name)

    @property
    def is_simulator(self) -> bool:
        return self.name.startswith("sim")

    def _share(self, address: int, bytes: int, owner: Any, name: str = "") -> Buffer:
        """Memory of this process that kernels use at its own address. `owner`
        is kept as long as the buffer is."""
        buffer = handle()
        c.buffer_share(self._handle, address, bytes, ctypes.byref(buffer))
        return Buffer(self, buffer, owner, name)

    def _wrap(self, address: int, bytes: int, owner: Any) -> Buffer:
        """Memory of the device that somebody else owns."""
        buffer = handle()
        c.buffer_wrap(self._handle, address, bytes, ctypes.byref(buffer))
        return Buffer(self, buffer, owner)

    def __repr__(self) -> str:
        return f"kiln.Device({self.name!r})"

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and c is not None:
            c.device_free(self._handle)


class Buffer:
    """Memory that kernels of a device can use; freed with the object."""

    def __init__(self, device: Device, buffer: Any, owner: Any = None, name: str = "") -> None:
        self.device = device
        self._handle = buffer
        self._owner = owner
        if name:
            c.buffer_set_name(self._handle, name.encode(errors="replace"))

    @property
    def address(self) -> int:
        """As kernels see it."""
        return int(c.buffer_address(self._handle))

    @property
    def nbytes(self) -> int:
        return int(c.buffer_bytes(self._handle))

    def slice(self, offset: int, bytes: int) -> Buffer:
        """A part of it, which keeps the whole."""
        part = handle()
        c.buffer_slice(self._handle, offset, bytes, ctypes.byref(part))
        return Buffer(self.device, part, self)

    def write(self, data: Any, offset: int = 0) -> None:
        """Copy the bytes of `data`, anything with the buffer protocol, into it."""
        view = memoryview(data).cast("B")
        copied = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
        c.buffer_write(self._handle, offset, copied, view.nbytes)

    def read(self, offset: int = 0, bytes: int | None = None) -> bytearray:
        """A copy of its bytes."""
        if bytes is None:
            bytes = max(self.nbytes - offset, 0)
        data = bytearray(bytes)
        if bytes:
            view = (ctypes.c_char * bytes).from_buffer(data)
            c.buffer_read(self._handle, offset, view, bytes)
        return data

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and c is not None:
            c.buffer_free(self._handle)
