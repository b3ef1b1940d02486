"""Memory of the host that kernels use at its own address.

An array or a tensor is registered with the driver when a kernel is first given
it, as a whole, and for as long as the object lives that owns its memory: so a
pointer to it that lies in another array is good too, and its end is an end.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator
from ctypes import c_size_t, c_void_p
from typing import Any

from . import cuda
from .activation import driver

_lock = threading.Lock()
#: Where registered memory begins, and its size.
_registered: dict[int, int] = {}


#: Owners that a launch under way needs, by thread.
_needed = threading.local()


@contextlib.contextmanager
def held() -> Iterator[None]:
    """What is registered within this block stays until its end: an owner may be
    an object that is made when it is asked for (storages of torch before 2.1)."""
    outer = getattr(_needed, "owners", None)
    _needed.owners = owners = []
    try:
        yield
    finally:
        _needed.owners = outer
        owners.clear()


def _forget(begin: int) -> None:
    """Its owner is gone."""
    with _lock:
        if _registered.pop(begin, None):
            driver().cuMemHostUnregister(c_void_p(begin))


def _overlapping(begin: int, size: int) -> list[int]:
    return [
        other
        for other, other_size in _registered.items()
        if other < begin + size and begin < other + other_size
    ]


def register(owner: Any, begin: int, size: int) -> None:
    """The memory of `owner`, until it is gone."""
    if size == 0:
        return
    owners = getattr(_needed, "owners", None)
    if owners is not None:
        owners.append(owner)
    with _lock:
        inside = _registered.get(begin)
        if inside == size:
            return
        for other in _overlapping(begin, size):
            if other <= begin and begin + size <= other + _registered[other]:
                return  # a part of what is known
        # What lay there before is gone, or this is a larger view of it.
        for other in _overlapping(begin, size):
            del _registered[other]
            driver().cuMemHostUnregister(c_void_p(other))
        cuda.call("cuMemHostRegister_v2", c_void_p(begin), c_size_t(size), 0)
        _registered[begin] = size
    weakref.finalize(owner, _forget, begin).atexit = False


def _owner_of_array(array: Any) -> Any:
    """The array whose memory this one is a view of."""
    import numpy

    while isinstance(array.base, numpy.ndarray):
        array = array.base
    return array


def _byte_bounds(array: Any) -> tuple[int, int]:
    low = high = array.__array_interface__["data"][0]
    for length, stride in zip(array.shape, array.strides):
        if length == 0:
            return low, low
        step = (length - 1) * stride
        low, high = (low + step, high) if step < 0 else (low, high + step)
    return low, high + array.itemsize


def register_array(array: Any) -> int:
    """A numpy array: its address."""
    owner = _owner_of_array(array)
    low, high = _byte_bounds(owner)
    register(owner, low, high - low)
    return int(array.__array_interface__["data"][0])


def register_tensor(tensor: Any) -> int:
    """A tensor of torch on the CPU: its address."""
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    size = storage.nbytes()
    begin = storage.data_ptr()
    register(storage, begin, size)
    return int(tensor.data_ptr())


def address_of(value: Any) -> int:
    """What a kernel is given for an argument that stands for memory; None: 0."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if hasattr(value, "__array_interface__") and hasattr(value, "strides"):
        return register_array(value)
    if hasattr(value, "storage") and hasattr(value, "data_ptr"):
        return register_tensor(value)
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    raise TypeError(
        f"an argument is {type(value).__name__}, which has no memory; a kernel takes arrays of "
        "numpy, tensors of torch on the CPU, and addresses"
    )
