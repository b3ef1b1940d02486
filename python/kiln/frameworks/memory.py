"""Memory of the host that kernels use at its own address.

An array or a tensor is registered with the driver when somebody first asks for
its address, as a whole, and for as long as the object lives that owns its
memory: so a pointer to it that lies in another array is good too, and its end
is an end.
"""

from __future__ import annotations

import threading
import weakref
from ctypes import c_size_t, c_void_p
from typing import Any

from . import cuda
from .activation import driver


class _Range:
    def __init__(self, begin: int, size: int) -> None:
        self.begin = begin
        self.size = size
        self.owners: set[int] = set()


_lock = threading.Lock()
#: Registered memory, by where it begins.
_registered: dict[int, _Range] = {}


def _forget(known: _Range, owner: int) -> None:
    """An owner is gone; the last one takes the memory along."""
    with _lock:
        known.owners.discard(owner)
        if not known.owners and _registered.get(known.begin) is known:
            _unregister(known.begin)


def _unregister(begin: int) -> None:
    del _registered[begin]
    driver().cuMemHostUnregister(c_void_p(begin))


def _enter(begin: int, size: int) -> _Range:
    """The range that has these bytes: a new one, where none has all of them."""
    overlapping = [
        known
        for known in _registered.values()
        if known.begin < begin + size and begin < known.begin + known.size
    ]
    for known in overlapping:
        if known.begin <= begin and begin + size <= known.begin + known.size:
            return known
    for known in overlapping:
        _unregister(known.begin)  # what lay there is gone, or a part of this
    cuda.call("cuMemHostRegister_v2", c_void_p(begin), c_size_t(size), 0)
    _registered[begin] = _Range(begin, size)
    return _registered[begin]


def register(owner: Any, begin: int, size: int) -> None:
    """The memory of `owner`, until it is gone."""
    if size == 0:
        return
    with _lock:
        known = _enter(begin, size)
        if id(owner) in known.owners:
            return
        known.owners.add(id(owner))
    weakref.finalize(owner, _forget, known, id(owner)).atexit = False


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


def register_tensor(tensor: Any) -> None:
    """A tensor of torch on the CPU: all of its storage."""
    has_storage = hasattr(tensor, "untyped_storage")
    storage = tensor.untyped_storage() if has_storage else tensor.storage()
    # Before torch 2.1 a storage is another object each time it is asked for.
    is_kept = has_storage and storage is tensor.untyped_storage()
    register(storage if is_kept else tensor, storage.data_ptr(), storage.nbytes())


def address_of(value: Any) -> int:
    """What a kernel is given for an argument that stands for memory; None: 0."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    if hasattr(value, "__array_interface__") and hasattr(value, "strides"):
        return register_array(value)
    if hasattr(value, "data_ptr"):
        return int(value.data_ptr())
    raise TypeError(
        f"an argument is {type(value).__name__}, which has no memory; a kernel takes arrays of "
        "numpy, tensors of torch on the CPU, and addresses"
    )
