"""Triton's driver for Kiln's device: `triton.runtime.driver.active`."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from . import cuda
from .activation import driver
from .triton_arguments import Signature

_WARP = 32


_INLINE_ASM = re.compile(rb"// begin inline asm\n.*?// end inline asm", re.DOTALL)
_LOC = re.compile(rb"^[ \t]*\.loc[ \t].*$", re.MULTILINE)


def _with_own_lines(ptx: bytes) -> bytes:
    """PTX in which inline assembly is at the line that wrote it.

    LLVM counts its second line of assembly as the source's next line, and so
    on. The line in front of the block is the right one; no line of the PTX
    moves.
    """
    return _INLINE_ASM.sub(lambda block: _LOC.sub(b"", block[0]), ptx)


class _Utilities:
    """What Triton asks of a driver: modules, and what the device has."""

    def load_binary(
        self, name: str, kernel: bytes, shared: int, device: int
    ) -> tuple[int, int, int, int, int]:
        """The module, the kernel, its registers, what it spills, and the threads
        that a CTA may have. The "binary" is PTX, which Kiln's ptxas hands on."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        text = _with_own_lines(kernel)
        cuda.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(text))
        cuda.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        values = [self._attribute(function, number) for number in (4, 3, 0)]
        if shared > 48 * 1024:
            static = self._attribute(function, 1)
            most = cuda.device_attribute(cuda.Attribute.SHARED_MEMORY_OPT_IN)
            cuda.call("cuFuncSetAttribute", function, 8, most - static)
        registers, local, threads = values
        return module.value or 0, function.value or 0, registers, local // 4, threads

    @staticmethod
    def _attribute(function: ctypes.c_void_p, attribute: int) -> int:
        value = ctypes.c_int()
        cuda.call("cuFuncGetAttribute", ctypes.byref(value), attribute, function)
        return value.value

    def unload_module(self, module: int) -> None:
        driver().cuModuleUnload(ctypes.c_void_p(module))

    def get_device_properties(self, device: int) -> dict[str, int]:
        attributes = cuda.Attribute
        wanted = {
            "max_shared_mem": attributes.SHARED_MEMORY_OPT_IN,
            "max_num_regs": attributes.REGISTERS_PER_BLOCK,
            "multiprocessor_count": attributes.MULTIPROCESSORS,
            "sm_clock_rate": attributes.CLOCK_RATE,
            "mem_clock_rate": attributes.MEMORY_CLOCK_RATE,
            "mem_bus_width": attributes.MEMORY_BUS_WIDTH,
        }
        values = {name: cuda.device_attribute(number) for name, number in wanted.items()}
        return values | {"warpSize": _WARP}

    def get_device_capability(self, device: int) -> tuple[int, int]:
        return cuda.capability()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        if device != 0:
            raise ValueError(f"device {device} was asked for; Kiln has one, number 0")

    def get_default_stream(self, device: int) -> int:
        return 0

    def is_stream_capturing(self, stream: int) -> bool:
        status = ctypes.c_int()
        cuda.call("cuStreamIsCapturing", ctypes.c_void_p(stream), ctypes.byref(status))
        return status.value != 0

    def set_printf_fifo_size(self, size: int) -> None:
        cuda.call("cuCtxSetLimit", 1, ctypes.c_size_t(size))


class KilnLauncher:
    """What launches one compiled kernel."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._signature = Signature(
            tuple(source.signature.values()), getattr(metadata, "tensordesc_meta", None)
        )
        self._metadata = metadata

    def __call__(
        self,
        grid_x: int,
        grid_y: int,
        grid_z: int,
        stream: int,
        function: int,
        packed: tuple[int, ...],
        launch_metadata: Any,
        enter: Callable[[Any], None] | None,
        leave: Callable[[Any], None] | None,
        *arguments: Any,
    ) -> None:
        if enter is not None:
            enter(launch_metadata)
        if grid_x * grid_y * grid_z > 0:
            self._launch((grid_x, grid_y, grid_z), stream, function, arguments)
        if leave is not None:
            leave(launch_metadata)

    def _launch(
        self, grid: tuple[int, int, int], stream: int, function: int, arguments: Any
    ) -> None:
        meta = self._metadata
        ctas = getattr(meta, "num_ctas", 1)
        # Held until the launch is over.
        scratch = [self._scratch(kind, math.prod(grid) * ctas, stream) for kind in _SCRATCH]
        parameters = self._signature.parameters(arguments)
        parameters += [ctypes.c_uint64(_address(one)) for one in scratch]
        if ctas == 16:
            cuda.call("cuFuncSetAttribute", ctypes.c_void_p(function), 14, 1)
        cuda.launch(
            function,
            (grid[0] * ctas, grid[1], grid[2]),
            (_WARP * meta.num_warps, 1, 1),
            parameters,
            cluster=ctas,
            shared=meta.shared,
            stream=stream,
            cooperative=bool(getattr(meta, "launch_cooperative_grid", False)),
            dependent=bool(getattr(meta, "launch_pdl", False)),
        )

    def _scratch(self, kind: str, ctas: int, stream: int) -> Any:
        """Memory for the kernel itself, which ends with the launch."""
        size = getattr(self._metadata, f"{kind}_scratch_size", 0) * ctas
        if size == 0:
            return None
        if kind == "global":
            # A program that has set no allocator fails here on a GPU, too.
            from triton.runtime import _allocation

            align = self._metadata.global_scratch_align
            _allocation._allocator.get()(size, align, stream)
        return cuda.Memory(size)


_SCRATCH = ("global", "profile")


def _address(scratch: cuda.Memory | None) -> int:
    return scratch.address if scratch else 0


class KilnDriver(DriverBase):  # type: ignore[misc]
    """One simulated device, in the place of a GPU."""

    def __init__(self) -> None:
        super().__init__()
        self.utils = _Utilities()
        self.launcher_cls = KilnLauncher

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        major, minor = cuda.capability()
        return GPUTarget("cuda", major * 10 + minor, _WARP)

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        return cuda.capability()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        self.utils.set_current_device(device)

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        """Where tensors are that kernels take."""
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        """What stands in torch.cuda's place."""
        from . import torch_cpu

        return torch_cpu.interface()

    def map_python_to_cpp_type(self, kind: str) -> str:
        """As Triton's own driver has it."""
        from triton.backends.nvidia.driver import ty_to_cpp

        return str(ty_to_cpp(kind))

    def get_benchmarker(self) -> Callable[..., Any]:
        from .triton_tuning import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        return _NoCache()

    def clear_cache(self, cache: Any) -> None:
        """There is no cache whose state a time could depend on."""

    def allocate_default_profile_scratch(self, size: int, alignment: int, stream: Any) -> Any:
        return cuda.Memory(size)


class _NoCache:
    def zero_(self) -> None:
        """As a tensor's."""
