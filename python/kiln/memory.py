"""The memory of a launch's arrays: shared with the kernel, or copied there and
back.

A kernel uses an array in place where the memory that it lies in begins as a
GPU's allocations do, at a multiple of 256; elsewhere it gets a copy that does,
so that a kernel finds the alignment that it would find on a GPU. An array that
is a view is there with all that it is a view of, since a kernel may step from
one view to the next.
"""

from __future__ import annotations

import ctypes

from ._library import c
from .devices import Buffer, Device
from .errors import RefusedError
from .tensors import Tensor

_ALIGNMENT = 256  # of a GPU's allocations
_MOST_COPIED = 1 << 30  # bytes; of more only what an array is a view of


class Placed:
    """A stretch of memory, and where kernels find it."""

    def __init__(self, name: str, tensor: Tensor, is_fresh: bool) -> None:
        self.names = [name]
        self.tensors = [tensor]
        self.is_fresh = is_fresh  # nothing counts as written
        self.low, self.bytes = tensor.base, tensor.base_bytes
        if self.bytes > _MOST_COPIED and (tensor.is_read_only or self.low % _ALIGNMENT):
            self.low = tensor.low - (tensor.low - tensor.base) % _ALIGNMENT
            self.bytes = tensor.low + tensor.nbytes - self.low
        self._buffer: Buffer | None = None
        self._is_shared = False

    def overlaps(self, other: Placed) -> bool:
        return self.low < other.low + other.bytes and other.low < self.low + self.bytes

    def take_in(self, other: Placed) -> None:
        """Become one with memory that it overlaps."""
        end = max(self.low + self.bytes, other.low + other.bytes)
        self.low = min(self.low, other.low)
        self.bytes = end - self.low
        self.names += [name for name in other.names if name not in self.names]
        self.tensors += other.tensors
        self.is_fresh = self.is_fresh and other.is_fresh

    @property
    def is_read_only(self) -> bool:
        return all(tensor.is_read_only for tensor in self.tensors)

    def open(self, device: Device) -> None:
        """Give kernels of the device the memory."""
        name = ", ".join(self.names)
        if self.tensors[0].device != "cpu":
            self._buffer = device._wrap(self.low, self.bytes, self.tensors)
            self._is_shared = True
            return
        if device.is_simulator and self.low % _ALIGNMENT == 0 and not self.is_read_only and not self.is_fresh:
            try:
                self._buffer = device._share(self.low, self.bytes, self.tensors, name)
                self._is_shared = True
                return
            except RefusedError:
                pass  # somebody shares a part of it already
        self._buffer = device.allocate(self.bytes, name)
        if not self.is_fresh:
            c.buffer_write(self._buffer._handle, 0, self.low, self.bytes)

    def address_of(self, tensor: Tensor) -> int:
        assert self._buffer is not None
        return self._buffer.address + tensor.address - self.low

    def slice_of(self, tensor: Tensor) -> Buffer:
        """The buffer of one array alone."""
        assert self._buffer is not None
        return self._buffer.slice(tensor.low - self.low, tensor.nbytes)

    def close(self) -> None:
        """Bring back what the kernel has written."""
        buffer, self._buffer = self._buffer, None
        if buffer is None or self._is_shared:
            return
        if not self.is_read_only:
            c.buffer_read(buffer._handle, 0, self.low, self.bytes)
        elif buffer.read() != ctypes.string_at(self.low, self.bytes):
            raise RefusedError(
                f"{', '.join(self.names)} is read-only, and the kernel wrote to it: pass a copy"
            )


class Memory:
    """All arrays of a launch. Those that overlap are in one piece."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._placed: list[Placed] = []

    def add(self, name: str, tensor: Tensor, is_fresh: bool = False) -> None:
        self._check_place(name, tensor)
        if tensor.nbytes == 0:
            return
        new = Placed(name, tensor, is_fresh)
        for old in [placed for placed in self._placed if placed.overlaps(new)]:
            self._placed.remove(old)
            old.take_in(new)
            new = old
        self._placed.append(new)

    def _check_place(self, name: str, tensor: Tensor) -> None:
        if tensor.device == "cpu":
            self._check_address(name, tensor)
            return
        if self._device.is_simulator:
            raise RefusedError(
                f"{name} lies on {tensor.device}; the simulator takes arrays in memory of the host: "
                "x.cpu() is a copy there"
            )
        if not tensor.device.startswith("cuda"):
            raise RefusedError(f"{name} lies on {tensor.device}; this is {self._device.name}")

    def _check_address(self, name: str, tensor: Tensor) -> None:
        """Of an array whose library is not known to tell the truth."""
        if tensor.is_trusted or tensor.nbytes == 0:
            return
        inside = 0 <= tensor.base and tensor.base + tensor.base_bytes <= 1 << 64
        if not inside or not c.memory_is_mapped(
            tensor.base, tensor.base_bytes, not tensor.is_read_only
        ):
            raise RefusedError(
                f"{name} says that it has {tensor.base_bytes} bytes at address {tensor.base:#x}, where "
                "this process has no such memory"
            )

    def open(self) -> None:
        for placed in self._placed:
            placed.open(self._device)

    def close(self) -> None:
        placed, self._placed = self._placed, []
        for one in placed:
            one.close()

    def _find(self, tensor: Tensor) -> Placed | None:
        for placed in self._placed:
            if placed.low <= tensor.low < placed.low + placed.bytes:
                return placed
        return None

    def address_of(self, tensor: Tensor) -> int:
        """Where kernels find it; 0 for one that has no elements."""
        placed = self._find(tensor) if tensor.nbytes else None
        return placed.address_of(tensor) if placed else 0

    def buffer_of(self, tensor: Tensor) -> Buffer | None:
        placed = self._find(tensor) if tensor.nbytes else None
        return placed.slice_of(tensor) if placed else None
