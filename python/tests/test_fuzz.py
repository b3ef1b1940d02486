"""Arguments drawn at random: an exception of Python's or a report, and never
the end of the interpreter. KILN_TEST_CALLS says how many."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import gc
import random
from fractions import Fraction
from typing import Any

import kiln
import ml_dtypes
import numpy as np
from conftest import ADD, DATA, FUZZ_CALLS

_ALLOWED = (kiln.KilnError, TypeError, ValueError, OverflowError, MemoryError, FileNotFoundError, AttributeError)


@dataclasses.dataclass
class Odd:
    value: Any
    more: ctypes.c_int = 3  # type: ignore[assignment]


class Lies:
    """It says that it is an array, or a number, and is none."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw

    def __index__(self) -> int:
        return self.draw.choice([0, -1, 2**70, "no"])  # type: ignore[return-value]

    def __dlpack__(self, **_: Any) -> Any:
        return self.draw.choice([None, 3, b"capsule", object()])


class Liar:
    """An array of numpy's, it says."""

    def __init__(self, draw: random.Random) -> None:
        self.interface = {
            "shape": draw.choice([(4,), (), (-1,), (2**62,), (2**70, 2), 3, ("a",), None]),
            "typestr": draw.choice(["<f4", "<f0", "", "|O", ">u2", "<V9999999999", 4]),
            "data": draw.choice([(4096, False), (-1, False), (10**30, True), (0, 0), ("a", 1), None, (1,)]),
            "strides": draw.choice([None, (4,), (-(2**62),), (1, 2), "ab", (2.5,)]),
            "version": 3,
        }
        for name in draw.sample(sorted(self.interface), draw.randrange(2)):
            del self.interface[name]

    @property
    def __array_interface__(self) -> Any:
        return self.interface


class Raises:
    def __float__(self) -> float:
        raise RuntimeError("no float")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


def _array(draw: random.Random) -> Any:
    kind = draw.choice(["f4", "f2", "i8", "u1", "?", "c8", "O", ">f4", "S3", "V5", ml_dtypes.bfloat16, "M8[s]"])
    shape = draw.choice([(), (0,), (1,), (7,), (3, 5), (64,), (2, 0, 4), (1,) * 6, (4, 4, 4)])
    made = np.zeros(shape, dtype=kind)
    if made.ndim and draw.random() < 0.5:
        step = draw.choice([-1, 2, 3, -5])
        made = made[::step]
    if draw.random() < 0.2:
        made.flags.writeable = False
    if draw.random() < 0.1:
        made = np.broadcast_to(made, (3, *made.shape))
    return made


def _value(draw: random.Random, depth: int = 0) -> Any:
    makers = [
        lambda: _array(draw),
        lambda: _array(draw),
        lambda: draw.choice([0, 1, -1, 8, 2**31, 2**32, 2**64, -(2**63), 10**40]),
        lambda: draw.choice([0.0, 1e39, float("nan"), float("inf"), 1j, True, None, Fraction(1, 3)]),
        lambda: draw.choice(["", "text", b"", b"12345678", bytearray(4), bytes(128)]),
        lambda: draw.choice([np.float32(1), np.int64(-1), np.bool_(True), np.str_("x"), np.float16(2)]),
        lambda: draw.choice([ctypes.c_int(3), (ctypes.c_int * 2)(), ctypes.c_void_p(16), ctypes.pointer(ctypes.c_int(1))]),
        lambda: array.array(draw.choice("fdIb"), draw.randbytes(0) or [1, 2, 3]),
        lambda: memoryview(draw.choice([b"abc", bytearray(16)])),
        lambda: draw.choice([Lies(draw), Liar(draw), Liar(draw), Raises(), object(), int, np.float32, [], {}, (1, 2), len]),
    ]
    if depth < 3:
        makers += [
            lambda: kiln.TensorMap(
                _value(draw, depth + 1),
                box=draw.choice([(1,), (8, 8), (0,), (256, 1), 3, "ab", (2**40,)]),
                swizzle=draw.choice([0, 32, 128, 7, -1, "x"]),
                type=draw.choice(["", "f16", "e2m1", "f99"]),
            ),
            lambda: Odd(_value(draw, depth + 1), draw.choice([3, 2.5, "x"])),
            lambda: kiln.uninitialized(_value(draw, depth + 1)),
        ]
    return draw.choice(makers)()


def _shape(draw: random.Random) -> Any:
    return draw.choice([1, 1, 2, (2, 1, 1), (1, 2), 0, -1, (), (1, 1, 1, 1), 2**33, 1.5, "a", None, np.int32(2), [1, 2], True])


def _options(draw: random.Random) -> dict[str, Any]:
    given: dict[str, Any] = {"max_instructions": 20_000}
    if draw.random() < 0.3:
        name = draw.choice([*kiln.option_names(), "nothing", "seed", "allow"])
        # Files and folders are not drawn.
        if name not in ("report", "timeline", "capture"):
            given[name] = draw.choice([0, 1, -1, 3, "on", "race", ["race", 3], None, 1.5, "all", 2**70, object()])
    given.setdefault("sms", None)
    if isinstance(given.get("interleavings"), int) and given["interleavings"] > 9:
        del given["interleavings"]
    return given


def test_no_argument_ends_the_interpreter():
    draw = random.Random(7)
    kernels = [
        kiln.load(ADD, threads=1).kernel(),
        kiln.load(DATA / "tma.ptx", threads=1).kernel(),
        kiln.load(DATA / "print.ptx", threads=1).kernel(),
    ]
    saved = kiln.load_kernel(DATA / "shift.kernel")
    reports = refusals = 0
    for call in range(FUZZ_CALLS):
        try:
            kernel = draw.choice(kernels)
            count = len(kernel.parameters)
            if draw.random() < 0.1:
                count = draw.randrange(6)
            args: Any = [_value(draw) for _ in range(count)]
            if draw.random() < 0.5 and kernel is kernels[0]:
                good = np.zeros(64, np.float32)
                args = [good, good.copy(), 1, 8]
                if draw.random() < 0.7:
                    args[draw.randrange(4)] = _value(draw)
            if draw.random() < 0.1:
                args = {draw.choice(["a", "out", 3, "x\0y", "n"]): value for value in args}
            if draw.random() < 0.1:
                saved.launch([np.zeros(64, np.uint32), _value(draw)], **_options(draw))
            elif draw.random() < 0.7:
                kernel.launch(1, 8, args, **_options(draw))
            else:
                kernel.launch(
                    _shape(draw), _shape(draw), args, cluster=_shape(draw),
                    shared=draw.choice([0, 64, -1, 1.5, 2**40, None]), **_options(draw)
                )  # fmt: skip
            reports += 1
        except _ALLOWED:
            refusals += 1
        except RuntimeError as error:
            assert "no float" in str(error), error
            refusals += 1
        if call % 5000 == 0:
            gc.collect()
    assert reports > FUZZ_CALLS // 20 and refusals > FUZZ_CALLS // 20
