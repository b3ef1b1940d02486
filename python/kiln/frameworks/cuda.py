"""The driver's functions, as far as this package calls them itself."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from .activation import driver


class CudaError(RuntimeError):
    """A function of the driver has failed; `code` is CUDA's number."""

    def __init__(self, function: str, code: int) -> None:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        words = (text.value or b"unknown error").decode()
        super().__init__(f"{function} returned error {code} ({words})")
        self.code = code


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; CudaError where it fails."""
    if code := driver()[name](*arguments):
        raise CudaError(name, code)


class Attribute:
    """Numbers of cuDeviceGetAttribute."""

    REGISTERS_PER_BLOCK = 12
    CLOCK_RATE = 13
    MULTIPROCESSORS = 16
    MEMORY_CLOCK_RATE = 36
    MEMORY_BUS_WIDTH = 37
    L2_BYTES = 38
    COMPUTE_MAJOR = 75
    COMPUTE_MINOR = 76
    SHARED_MEMORY_OPT_IN = 97


def device_attribute(attribute: int) -> int:
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), attribute, 0)
    return value.value


def capability() -> tuple[int, int]:
    return device_attribute(Attribute.COMPUTE_MAJOR), device_attribute(Attribute.COMPUTE_MINOR)


def device_name() -> str:
    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, len(name), 0)
    return name.value.decode()


def memory_bytes() -> int:
    size = ctypes.c_size_t()
    call("cuDeviceTotalMem_v2", ctypes.byref(size), 0)
    return size.value


def synchronize() -> None:
    call("cuCtxSynchronize")


class Memory:
    """Memory of the device, for as long as this object lives."""

    def __init__(self, size: int) -> None:
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.address = address.value
        self._free = driver().cuMemFree_v2

    def data_ptr(self) -> int:
        return self.address

    def __del__(self) -> None:
        self._free(ctypes.c_uint64(self.address))


class _ClusterSize(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


class _Value(ctypes.Union):
    _fields_ = [
        ("cluster", _ClusterSize),
        ("flag", ctypes.c_int),
        ("bytes", ctypes.c_uint64 * 8),
    ]


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", _Value)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("attribute_count", ctypes.c_uint),
    ]


_COOPERATIVE, _CLUSTER, _DEPENDENT = 2, 4, 6


def launch(
    function: int,
    grid: Sequence[int],
    block: Sequence[int],
    parameters: Sequence[Any],
    *,
    cluster: int = 1,
    shared: int = 0,
    stream: int = 0,
    cooperative: bool = False,
    dependent: bool = False,
) -> None:
    """Launch a kernel; `parameters` are ctypes objects."""
    attributes = []
    if cluster > 1:
        size = _Value(cluster=_ClusterSize(cluster, 1, 1))
        attributes.append(_LaunchAttribute(_CLUSTER, 0, size))
    if cooperative:
        attributes.append(_LaunchAttribute(_COOPERATIVE, 0, _Value(flag=1)))
    if dependent:
        attributes.append(_LaunchAttribute(_DEPENDENT, 0, _Value(flag=1)))
    config = _LaunchConfig(
        (ctypes.c_uint * 3)(*grid),
        (ctypes.c_uint * 3)(*block),
        shared,
        stream,
        (_LaunchAttribute * max(len(attributes), 1))(*attributes),
        len(attributes),
    )
    pointers = (ctypes.c_void_p * max(len(parameters), 1))(
        *(ctypes.addressof(parameter) for parameter in parameters)
    )
    call("cuLaunchKernelEx", ctypes.byref(config), ctypes.c_void_p(function), pointers, None)
