"""torch without a GPU: programs that say "cuda" get tensors on the CPU, which
kernels on Kiln's device use where they are.

Functions of torch see the device before torch does (a TorchFunctionMode), and
torch.cuda answers for Kiln's device as far as programs ask before they launch.
"""

from __future__ import annotations

import contextlib
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import cuda, memory

_modes: list[Any] = []


def _is_cuda(value: Any) -> bool:
    import torch

    if isinstance(value, torch.device):
        return value.type == "cuda"
    return isinstance(value, str) and (value == "cuda" or value.startswith("cuda:"))


def _make_mode() -> Any:
    import torch
    from torch.overrides import TorchFunctionMode

    #: Whose positional arguments may be the name of a device.
    named = {torch.Tensor.to, torch.Tensor.new_tensor, torch.Tensor.new_empty}

    class OnCpu(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self,
            function: Callable[..., Any],
            kinds: Any,
            arguments: tuple[Any, ...] = (),
            keywords: dict[str, Any] | None = None,
        ) -> Any:
            keywords = dict(keywords or {})
            if function is torch.Tensor.cuda:
                return arguments[0]
            if _is_cuda(keywords.get("device")):
                keywords["device"] = torch.device("cpu")
            if any(isinstance(one, torch.device) for one in arguments) or function in named:
                arguments = tuple(
                    torch.device("cpu") if _is_cuda(one) else one for one in arguments
                )
            return function(*arguments, **keywords)

    return OnCpu()


class Stream:
    """The one stream that a program of torch sees."""

    cuda_stream = 0
    device_index = 0

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def synchronize(self) -> None:
        cuda.synchronize()

    def wait_stream(self, stream: Any) -> None:
        """There is one: its work is in order."""

    def wait_event(self, event: Any) -> None:
        """Likewise."""

    def record_event(self, event: Any = None) -> Any:
        event = event or Event()
        event.record()
        return event

    def query(self) -> bool:
        return True

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: Any) -> None:
        """The stream before is the same."""


class Event:
    """A moment of this machine's clock."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        cuda.synchronize()
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        cuda.synchronize()

    def wait(self, stream: Any = None) -> None:
        cuda.synchronize()

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: Event) -> float:
        if self._time is None or later._time is None:
            raise RuntimeError("both events must be recorded before their times are compared")
        return (later._time - self._time) * 1e3


@contextlib.contextmanager
def _same_stream(_: Any = None) -> Iterator[None]:
    yield


class _NoGraph:
    def __init__(self, *_: Any, **__: Any) -> None:
        raise NotImplementedError("CUDA graphs of torch are not captured on tensors of the CPU")


def _properties(_: Any = None) -> types.SimpleNamespace:
    major, minor = cuda.capability()
    attributes = cuda.Attribute
    return types.SimpleNamespace(
        name=cuda.device_name(),
        major=major,
        minor=minor,
        total_memory=cuda.memory_bytes(),
        multi_processor_count=cuda.device_attribute(attributes.MULTIPROCESSORS),
        warp_size=32,
        regs_per_multiprocessor=cuda.device_attribute(attributes.REGISTERS_PER_BLOCK),
        shared_memory_per_block_optin=cuda.device_attribute(attributes.SHARED_MEMORY_OPT_IN),
        L2_cache_size=cuda.device_attribute(attributes.L2_BYTES),
    )


def _nothing(*_: Any, **__: Any) -> None:
    """What changes nothing on a simulated device."""


_CUDA: dict[str, Any] = {
    "is_available": lambda: True,
    "is_initialized": lambda: True,
    "init": _nothing,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": _nothing,
    "get_device_name": lambda _=None: cuda.device_name(),
    "get_device_capability": lambda _=None: cuda.capability(),
    "get_device_properties": _properties,
    "synchronize": lambda _=None: cuda.synchronize(),
    "current_stream": lambda _=None: Stream(),
    "default_stream": lambda _=None: Stream(),
    "stream": _same_stream,
    "set_stream": _nothing,
    "device": _same_stream,
    "Stream": Stream,
    "ExternalStream": Stream,
    "Event": Event,
    "CUDAGraph": _NoGraph,
    "graph": _NoGraph,
    "empty_cache": _nothing,
    "reset_peak_memory_stats": _nothing,
    "memory_allocated": lambda _=None: 0,
    "max_memory_allocated": lambda _=None: 0,
    "manual_seed": _nothing,
    "manual_seed_all": _nothing,
}


def prepare(module: types.ModuleType) -> None:
    """Let a program's words for the GPU mean the CPU's memory."""
    for name, value in _CUDA.items():
        setattr(module.cuda, name, value)
    own_address = module.Tensor.data_ptr

    def data_ptr(tensor: Any) -> int:
        memory.register_tensor(tensor)
        return int(own_address(tensor))

    module.Tensor.data_ptr = data_ptr
    # A kernel takes every tensor.
    module.Tensor.is_cuda = property(lambda _: True)
    # Programs that ask the module of their tensors' device for streams.
    for name in ("Stream", "current_stream", "stream", "set_stream", "synchronize"):
        if hasattr(module, "cpu") and not hasattr(module.cpu, name):
            setattr(module.cpu, name, _CUDA.get(name, _nothing))
    mode = _make_mode()
    mode.__enter__()
    _modes.append(mode)  # for as long as the process lives


def interface() -> Any:
    """torch.cuda, as prepared."""
    import torch

    return torch.cuda
