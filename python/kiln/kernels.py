"""Products and attention in one call: `gemm`, `attention`, `grouped_gemm`.

Arrays in memory of the host go through the simulator, checked; tensors of torch
on a GPU go there, into the current stream. Kernels are built by Kiln's compiler
for the problem at hand, once.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ._library import LIBRARIES, c, handle
from .devices import Device
from .errors import MachineError, RefusedError
from .saved import SavedKernel, _Strided
from .tensors import Tensor, describe, tensor_of


@functools.cache
def _load_compiler() -> None:
    """libkiln of the second distribution, or of a source tree."""
    spec = find_spec("kiln_compiler")
    folders = [Path(place) / "lib" for place in (spec.submodule_search_locations or ())] if spec else []
    for folder in [*folders, LIBRARIES]:
        for path in sorted(folder.glob("libkiln.so*")):
            c.compiler_load(str(path).encode())
            return
    raise MachineError(
        "kernels are built by Kiln's compiler, which is not installed: pip install kiln-gpu-compiler"
    )


@functools.lru_cache(maxsize=256)
def build(kind: str, problem: str, schedule: str | None = None, device: Device | None = None) -> SavedKernel:
    """A kernel for a device, or for an H200: `kind` is gemm, attention or
    grouped-gemm; problem and schedule are texts as the command has them
    ("4096x4096x4096 bf16 -> bf16 tn")."""
    _load_compiler()
    kernel = handle()
    c.kernel_build(
        device._handle if device else None,
        kind.encode(),
        problem.encode(),
        schedule.encode() if schedule else None,
        ctypes.byref(kernel),
    )
    return SavedKernel(kernel)


@functools.cache
def _device(where: str) -> Device:
    return Device("sim" if where == "cpu" else where)


def _array(name: str, value: Any, dims: tuple[int, ...]) -> Tensor:
    tensor = tensor_of(value)
    if tensor is None:
        raise TypeError(f"{name} is {describe(value)}; it takes an array")
    if len(tensor.shape) not in dims:
        raise RefusedError(
            f"{name} has the shape {tensor.shape}; it has {' or '.join(map(str, dims))} dimensions"
        )
    if not tensor.type:
        raise RefusedError(f"{name} has elements of a type that Kiln has none for: {describe(value)}")
    if tensor.nbytes == 0:
        raise RefusedError(f"{name} has the shape {tensor.shape}, and no elements")
    return tensor


_NUMPY = {"f16": "float16", "f32": "float32", "tf32": "float32", "f64": "float64", "i32": "int32"}
_EXTENSIONS = {"bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2"}


def _empty(like: Any, shape: tuple[int, ...], kind: str) -> Any:
    """An array of the library that `like` is of."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return like.new_empty(shape, dtype=getattr(torch, (_NUMPY | _EXTENSIONS)[kind]))
    import numpy

    if kind in _NUMPY:
        return numpy.empty(shape, dtype=_NUMPY[kind])
    try:
        import ml_dtypes
    except ImportError:
        raise MachineError(f"numpy has no {kind} without ml_dtypes: pass out=, or install it") from None
    return numpy.empty(shape, dtype=getattr(ml_dtypes, _EXTENSIONS[kind]))


def _run(kernel: SavedKernel, device: Device, args: dict[str, Any], options: dict[str, Any]) -> None:
    names = {spec.name for spec in kernel.arguments}
    given = _Strided((name, value) for name, value in args.items() if name in names)
    if device.is_simulator:
        kernel.launch(given, device=device, **options).raise_for_errors()
        return
    torch = sys.modules.get("torch")
    if torch is None:
        raise RefusedError("arrays of a GPU are tensors of torch, whose current stream the kernel goes into")
    kernel._enqueue(device, given, torch.cuda.current_stream(device.id).cuda_stream)


def _check_places(**tensors: Tensor | None) -> str:
    """Where all of them lie."""
    places = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    first = next(iter(places.values()))
    for name, place in places.items():
        if place != first:
            where = ", ".join(f"{name} on {place}" for name, place in places.items())
            raise RefusedError(f"all arrays lie on one device; here lie {where}")
    return first


def _order(name: str, tensor: Tensor) -> tuple[str, int]:
    """ "t" for rows one behind the other, "n" for columns, and elements from one
    to the next."""
    rows, columns = tensor.shape[-2:]
    by_row, by_column = (stride // tensor.itemsize for stride in tensor.strides[-2:])
    if by_column == 1 and (rows == 1 or by_row >= columns):
        return "t", by_row if rows > 1 else columns
    if by_row == 1 and (columns == 1 or by_column >= rows):
        return "n", by_column if columns > 1 else rows
    raise RefusedError(
        f"{name} has strides of {tensor.strides} bytes; its rows or its columns are contiguous"
    )


def _batch(name: str, tensor: Tensor, batch: int) -> int:
    """Elements from one product of the batch to the next."""
    if len(tensor.shape) == 2:
        return 0
    if tensor.shape[0] != batch:
        raise RefusedError(f"{name} has {tensor.shape[0]} matrices, and the batch {batch}")
    return tensor.strides[0] // tensor.itemsize


_DEFAULT_OUT = {"tf32": "f32", "e4m3": "bf16", "e5m2": "bf16", "i8": "i32", "u8": "i32", "f32": "f32"}


def gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    alpha: float | None = None,
    beta: float | None = None,
    bias: Any = None,
    act: str = "",
    out: Any = None,
    schedule: str | None = None,
    **options: Any,
) -> Any:
    """act(alpha * a @ b + beta * c + bias), by Kiln's kernels.

    `a` is [m, k] and `b` [k, n], or [batch, ...] of them, f16, bf16, f32 (as
    tf32), 8-bit floats or integers; rows or columns are contiguous. `bias` has a
    number for each column of the result, or for each row where it is [m, 1].
    `act` is relu, gelu or silu. The result is of the type of `a` (32 bits of
    numpy's f16 and of integers, bf16 of 8-bit floats), or is `out`.
    """
    ta, tb = _array("a", a, (2, 3)), _array("b", b, (2, 3))
    if ta.type != tb.type:
        raise RefusedError(f"a is {ta.type} and b is {tb.type}; they have one type")
    (m, k), (k_of_b, n) = ta.shape[-2:], tb.shape[-2:]
    if k != k_of_b:
        raise RefusedError(f"a is {ta.shape} and b is {tb.shape}; the columns of a are the rows of b")
    batch = next((t.shape[0] for t in (ta, tb) if len(t.shape) == 3), 1)
    shape = (batch, m, n) if len(ta.shape) == 3 or len(tb.shape) == 3 else (m, n)
    kind = "tf32" if ta.type == "f32" else ta.type
    if out is None:
        out = _empty(a, shape, _DEFAULT_OUT.get(kind, "f32" if _is_numpy(a) else kind))
    td = _array("out", out, (len(shape),))
    if td.shape != shape:
        raise RefusedError(f"out has the shape {td.shape}; the product has {shape}")
    tc = _array("c", c, (len(shape),)) if c is not None else None
    tbias = _array("bias", bias, (1, 2)) if bias is not None else None
    if tc is not None and (tc.shape != shape or tc.type != td.type):
        raise RefusedError(f"c is {tc.type} {tc.shape}; it is of the type and shape of the result: {td.type} {shape}")
    (order_a, lda), (order_b, ldb), (order_d, ldd) = _order("a", ta), _order("b", tb), _order("out", td)
    words = [f"{m}x{n}x{k}", kind, "->", td.type, order_a + order_b, f"lda={lda}", f"ldb={ldb}", f"ldd={ldd}"]
    if batch > 1:
        words += [f"batch={batch}", f"stride-a={_batch('a', ta, batch)}", f"stride-b={_batch('b', tb, batch)}"]
        words.append(f"stride-d={_batch('out', td, batch)}")
    if order_d == "n":
        words.append("d=column")
    if alpha is not None:
        words.append("alpha")
    if tc is not None:
        order_c, ldc = _order("c", tc)
        if order_c != order_d:
            raise RefusedError("c and the result are stored the same way: by rows, or by columns")
        words += ["beta", f"ldc={ldc}"] + ([f"stride-c={_batch('c', tc, batch)}"] if batch > 1 else [])
    if tbias is not None:
        words.append(f"bias={_bias(tbias, m, n)}")
    if act:
        words.append(f"act={act}")
    device = _device(_check_places(a=ta, b=tb, out=td, c=tc, bias=tbias))
    args = {"a": a, "b": b, "d": out, "c": c, "bias": bias}
    args |= {"alpha": 1.0 if alpha is None else alpha, "beta": 1.0 if beta is None else beta}
    _run(build("gemm", " ".join(words), schedule, device), device, args, options)
    return out


def _is_numpy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy"


def _bias(bias: Tensor, m: int, n: int) -> str:
    """Whether it has a number for each column, or for each row."""
    if bias.shape in ((n,), (1, n)):
        return "column"
    if bias.shape == (m, 1):
        return "row"
    raise RefusedError(f"bias has the shape {bias.shape}; it is ({n},), or ({m}, 1) of rows")


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    causal: bool = False,
    scale: float | None = None,
    window: tuple[int, int] | None = None,
    soft_cap: float = 0,
    out: Any = None,
    lse: Any = None,
    schedule: str | None = None,
    **options: Any,
) -> Any:
    """softmax(scale * q @ k.T) @ v, by Kiln's kernel of fused attention.

    `q` is [batch, heads, queries, head_dim]; `k` and `v` have as many heads, or
    fewer that query heads share. All are bf16 or f16, and contiguous. `lse`, if
    given, is an f32 array [batch, heads, queries] for the logarithms of the sums.
    """
    tensors = {name: _array(name, value, (4,)) for name, value in (("q", q), ("k", k), ("v", v))}
    tq, tk, tv = tensors.values()
    for name, tensor in tensors.items():
        if not tensor.is_contiguous:
            raise RefusedError(f"{name} has strides of {tensor.strides} bytes; it is contiguous: x.contiguous()")
    batch, heads, queries, dim = tq.shape
    if tk.shape != tv.shape or tk.shape[0] != batch or tk.shape[3] != dim:
        raise RefusedError(
            f"q is {tq.shape}, k is {tk.shape}, v is {tv.shape}; k and v have one shape, and the batch and "
            "head dimension of q"
        )
    if out is None:
        out = _empty(q, tq.shape, tq.type)
    if lse is None:
        lse = _empty(q, tq.shape[:3], "f32")
    words = [f"{batch}x{heads}x{tk.shape[1]}x{queries}x{tk.shape[2]}x{dim}", tq.type]
    words += ["causal"] if causal else []
    words += [f"window={window[0]},{window[1]}"] if window else []
    words += [f"soft-cap={soft_cap}"] if soft_cap else []
    words += [f"scale={scale}"] if scale else []
    places = _check_places(**tensors, out=_array("out", out, (4,)), lse=_array("lse", lse, (3,)))
    device = _device(places)
    args = {"q": q, "k": k, "v": v, "o": out, "lse": lse}
    _run(build("attention", " ".join(words), schedule, device), device, args, options)
    return out


def grouped_gemm(
    a: Any,
    b: Any,
    offsets: Any,
    *,
    swiglu: bool = False,
    out: Any = None,
    schedule: str | None = None,
    **options: Any,
) -> Any:
    """out[i] = a[i] @ b[g].T for the rows i of group g: the experts of a mixture.

    `a` is [rows, k], `b` [groups, n, k] ([groups, 2, n, k] with `swiglu`), and
    `offsets` has groups + 1 numbers of 32 bits: where each group begins.
    """
    ta, tb = _array("a", a, (2,)), _array("b", b, (4,) if swiglu else (3,))
    toffsets = _array("offsets", offsets, (1,))
    (rows, k), groups, n = ta.shape, tb.shape[0], tb.shape[-2]
    if tb.shape[-1] != k:
        raise RefusedError(f"a is {ta.shape} and b is {tb.shape}; both end with k")
    if toffsets.shape != (groups + 1,) or toffsets.type not in ("i32", "u32"):
        raise RefusedError(
            f"offsets is {toffsets.type} {toffsets.shape}; it is i32 ({groups + 1},): groups + 1 numbers"
        )
    for name, tensor in (("a", ta), ("b", tb)):
        if not tensor.is_contiguous:
            raise RefusedError(f"{name} has strides of {tensor.strides} bytes; it is contiguous: x.contiguous()")
    if out is None:
        out = _empty(a, (rows, n), "bf16" if ta.type == "e4m3" else ta.type)
    td = _array("out", out, (2,))
    if td.shape != (rows, n):
        raise RefusedError(f"out has the shape {td.shape}; the product has {(rows, n)}")
    words = [f"{groups}x{rows}x{n}x{k}", ta.type, "->", td.type, "contiguous", *(["swiglu"] if swiglu else [])]
    device = _device(_check_places(a=ta, b=tb, offsets=toffsets, out=td))
    kernel = build("grouped-gemm", " ".join(words), schedule, device)
    numbers = next(spec.name for spec in kernel.arguments if spec.type == "i32")
    _run(kernel, device, {"a": a, "b": b, numbers: offsets, "d": out}, options)
    return out
