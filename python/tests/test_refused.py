"""What is wrong is refused with its value and with what is accepted, by the
exception that Python has for it."""

from __future__ import annotations

import kiln
import numpy as np
import pytest
from conftest import ADD, DATA

X = np.zeros(8, dtype=np.float32)


class OnGpu:
    """A tensor of a GPU, as DLPack shows it."""

    def __dlpack__(self, **_):
        import ctypes

        from kiln.tensors import _DLTensor

        shape = (ctypes.c_int64 * 1)(8)
        self.keep = (shape, _DLTensor(4096, 2, 0, 1, 2, 32, 1, shape, None, 0))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.keep[1]), b"dltensor", None)


class NeedsGrad:
    def __dlpack__(self, **_):
        raise BufferError("it requires grad, use detach")


class Liar:
    """An array at an address where nothing is."""

    def __init__(self, address):
        self.address = address

    @property
    def __array_interface__(self):
        return {"shape": (64,), "typestr": "<f4", "data": (self.address, False), "version": 3}


class Sparse:
    """As torch refuses what DLPack has no word for."""

    def __dlpack__(self, stream=None):
        raise RuntimeError("Bool type is not supported by dlpack")


class Wrong:
    __array_interface__ = {"shape": (-1,), "typestr": "<f4", "data": (4096, False)}


class Junk:
    def __dlpack__(self, **_):
        return 3


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ([X, X, 1], TypeError, r"add takes 4 parameters \(out: pointer, .*n: u32 of 4 bytes\); args has 3"),
        ({"out": X}, TypeError, "args has 1"),
        ({1: X}, TypeError, "keys are not all texts"),
        (5, TypeError, "args is 5; it takes a list"),
        ("abcd", TypeError, "args is 'abcd'"),
        ([X, X, "1", 8], TypeError, r"args\[2\] is '1'; a parameter takes an array"),
        ([X, X, 1, 8.0], TypeError, r"args\[3\] is 8.0; it takes a whole number \(u32\)"),
        ([X, X, 1j, 8], TypeError, "complex"),
        ([X, X, 1, 2**32], ValueError, r"args\[3\] is 4294967296; the parameter has 4 bytes"),
        ([X, X, 1e39, 8], ValueError, "is 1e\\+39, which is beyond the largest f32"),
        ([1.5, X, 1, 8], TypeError, r"args\[0\] is 1.5"),
        ([b"abc", X, 1, 8], ValueError, "the struct has 3 bytes; the parameter is a pointer of 8"),
        ([X, X, X, 8], ValueError, "an array, which is a pointer, has 8 bytes"),
        ([X, X, 1, None], ValueError, "a null pointer has 8 bytes"),
        ([kiln.TensorMap(X, box=(8,)), X, 1, 8], ValueError, "a tensor map has 128 bytes"),
        ([object(), X, 1, 8], TypeError, "is a object"),
        ([X.astype(object), X, 1, 8], ValueError, "Python objects"),
        ([X.astype(">f4"), X, 1, 8], ValueError, "big-endian"),
        ([OnGpu(), X, 1, 8], ValueError, r"args\[0\] lies on cuda:0; the simulator takes .* x.cpu\(\)"),
        ([NeedsGrad(), X, 1, 8], ValueError, "use detach"),
        ([Junk(), X, 1, 8], TypeError, "returned 3, not a capsule"),
        ([Liar(4096), X, 1, 8], ValueError, r"args\[0\] says that it has 256 bytes at address 0x1000"),
        ([Liar(-1), X, 1, 8], ValueError, "this process has no such memory"),
        ([Liar(10**30), X, 1, 8], ValueError, "this process has no such memory"),
        ([Liar("a"), X, 1, 8], TypeError, "has no address"),
        ([Sparse(), X, 1, 8], ValueError, "Sparse cannot be used: Bool type is not supported"),
        ([Wrong(), X, 1, 8], TypeError, "__array_interface__ of a .*Wrong is not understood: "),
        ([memoryview(b"abc"), X, 1, 8], ValueError, "read-only memory"),
        ([np.float32, X, 1, 8], TypeError, "a parameter takes"),
        ([X, X, np.float32, 8], TypeError, "a parameter takes"),
    ],
)
def test_arguments(add, args, error, text):
    with pytest.raises(error, match=text):
        add.launch(1, 8, args)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"grid": 0}, ValueError, "grid is 0; each of its sizes is from 1"),
        ({"grid": (1, 2, 3, 4)}, ValueError, "one to three whole numbers"),
        ({"grid": 1.5}, TypeError, "grid is 1.5"),
        ({"grid": "ab"}, (TypeError, ValueError), "grid is 'ab'"),
        ({"block": 4096}, ValueError, "4096"),
        ({"block": True}, TypeError, "block is True"),
        ({"block": 2**40}, ValueError, "from 1 to 2\\*\\*32 - 1"),
        ({"shared": -1}, ValueError, "shared is -1"),
        ({"shared": 1 << 20}, ValueError, "shared memory"),
        ({"cluster": 3}, ValueError, "cluster"),
        ({"seeds": 3}, TypeError, "'seeds' is not an option; the options are interleaving, "),
        ({"seed": -1}, ValueError, "seed is -1; it takes a whole number"),
        ({"seed": 1.5}, ValueError, "seed is 1.5"),
        ({"interleavings": 0}, ValueError, "interleavings is '0'; it takes a whole number from 1"),
        ({"interleaving": "fast"}, ValueError, "'fast'; it takes eager, lazy, random or all"),
        ({"interleaving": "ea\0ger"}, ValueError, "zero byte"),
        ({"allow": ["race", "rase"]}, ValueError, "'rase'"),
        ({"allow": object()}, ValueError, "allow is "),
        ({"checks": "maybe"}, ValueError, "it takes on or off"),
        ({"time_limit": -1}, ValueError, "time_limit is -1"),
        ({"time_limit": float("nan")}, ValueError, "time_limit is nan"),
        ({"stats": "yes"}, ValueError, "stats is 'yes'; it takes True or False"),
        ({"kernel": "add"}, ValueError, "kernel, launch and capture are for programs"),
    ],
)
def test_launches(add, given, error, text):
    launch = {"grid": 1, "block": 8, "args": [X, X, 1, 8]} | given
    with pytest.raises(error, match=text):
        add.launch(**launch)


@pytest.mark.parametrize(
    ("source", "error", "text"),
    [
        ("none.ptx", FileNotFoundError, "none.ptx"),
        ("a\0b", ValueError, "neither PTX nor the path"),
        (5, TypeError, "PTX is a text or the path of a file, not int"),
        ([], ValueError, "at least one text"),
        ("\nnonsense", ValueError, "PTX:2: expected"),
        (b"\x7fELF\n", ValueError, "machine code"),
        (b"\x50\xed\x55\xba\n", ValueError, "neither PTX nor machine code"),
        ((DATA / "plain.fatbin").read_bytes()[:100], ValueError, "bytes"),
        ((DATA / "cubin.fatbin").read_bytes(), ValueError, "no PTX"),
        ("\n{}", ValueError, "saved kernel"),
        (ADD.replace("sm_90", "sm_999"), ValueError, "sm_999"),
    ],
)
def test_modules(source, error, text):
    with pytest.raises(error, match=text):
        kiln.load(source)


def test_names(add):
    with pytest.raises(ValueError, match="there is no entry 'sub'; the module has add"):
        add.module.kernel("sub")
    with pytest.raises(ValueError, match="h300.*there are a100"):
        kiln.load(ADD, gpu="h300")
    with pytest.raises(ValueError, match="'gpu' is not a valid device; use auto, sim, cuda"):
        kiln.Device("gpu")
    with pytest.raises(TypeError, match="not by 3"):
        kiln.Device(3)
    with pytest.raises(ValueError, match="there is no finding 'rase'|'rase'"):
        kiln.explain("rase")
    with pytest.raises(TypeError, match="is no array"):
        kiln.uninitialized(3)
    with pytest.raises(ValueError, match="a buffer of -1 bytes"):
        kiln.Device().allocate(-1)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"box": (8, 8)}, r"box of a tensor map has 2 numbers; the tensor has 1 dimensions"),
        ({"box": (1000,)}, "1000"),
        ({"box": (0,)}, "box"),
        ({"box": (8,), "swizzle": 48}, "swizzle_bytes of a tensor map is 48; it takes 0, 32, 64, 128"),
        ({"box": (8,), "interleave": 8}, "interleave_bytes"),
        ({"box": (8,), "l2_promotion": 1}, "l2_promotion_bytes"),
        ({"box": (8,), "type": "f99"}, "f99"),
        ({"box": (8,), "array": X[::2]}, "the innermost is of one element"),
        ({"box": (), "array": np.zeros((), "f4")}, "0 dimensions; 1 to 5"),
        ({"box": (8,), "array": np.zeros(8, "c8")}, "type of the tensor map's elements is not known"),
    ],
)
def test_tensor_maps(given, text):
    kernel = kiln.load(DATA / "tma.ptx").kernel()
    with pytest.raises(ValueError, match=text):
        kernel.launch(1, 16, [kiln.TensorMap(**({"array": X} | given)), X, 0])


def test_errors_have_both_kinds():
    assert issubclass(kiln.RefusedError, ValueError) and issubclass(kiln.RefusedError, kiln.KilnError)
    assert issubclass(kiln.MachineError, RuntimeError)
    assert issubclass(kiln.Interrupted, KeyboardInterrupt)
