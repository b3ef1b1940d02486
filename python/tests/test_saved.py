"""Saved kernels: a contract that arguments are held against."""

from __future__ import annotations

import kiln
import numpy as np
import pytest
from conftest import DATA


@pytest.fixture(scope="module")
def shift() -> kiln.SavedKernel:
    kernel = kiln.load_kernel(DATA / "shift.kernel")
    with pytest.raises(kiln.RefusedError, match="saved kernel, not PTX: kiln.load_kernel"):
        kiln.load(DATA / "shift.kernel")
    return kernel


def test_it_knows_what_it_takes(shift, tmp_path):
    assert repr(shift) == "<kiln.SavedKernel shift(x: u32[64], by: u32)>"
    assert shift.contract["block"] == [32, 1, 1]
    shift.save(tmp_path / "copy")
    assert kiln.load_kernel(tmp_path / "copy").arguments == shift.arguments


@pytest.mark.parametrize("args", [lambda x: [x, 5], lambda x: {"by": np.int64(5), "x": x}])
def test_launches(shift, args):
    x = np.arange(64, dtype=np.uint32)
    shift.launch(args(x)).raise_for_errors()
    np.testing.assert_array_equal(x, np.arange(64) + 5)
    part = np.zeros(200, np.uint32)[100:164]
    shift.launch(args(part)).raise_for_errors()
    assert (part == 5).all()


X = np.zeros(64, np.uint32)


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ([X], TypeError, r"shift takes 2 arguments \(x: u32\[64\], by: u32\); args has 1"),
        ({"x": X}, TypeError, "shift lacks 'by'"),
        ({"x": X, "by": 1, "to": 2}, TypeError, "shift takes no 'to'; it takes x: u32"),
        ([X.astype(np.float32), 1], ValueError, "'x' of shift is u32; the array has elements of f32"),
        ([np.zeros(128, np.uint32)[::2], 1], ValueError, "has strides of \\(8,\\) bytes"),
        ([X[:10], 1], ValueError, "needs 256 bytes for 64 of u32; the buffer has 40"),
        ([X[:0], 1], ValueError, "has no elements"),
        ([3, 1], TypeError, r"'x' of shift is 3; it takes an array \(x: u32\[64\]\)"),
        ([X, X], TypeError, "'by' of shift is a numpy.ndarray; it takes a number of type u32"),
        ([X, 1.5], TypeError, "'by' of shift is 1.5; it takes a whole number"),
        ([X, 2**32], ValueError, "4294967296"),
        (5, TypeError, "args is 5"),
    ],
)
def test_arguments_are_refused_in_its_words(shift, args, error, text):
    with pytest.raises(error, match=text):
        shift.launch(args)


def test_a_damaged_file_is_refused(tmp_path):
    text = (DATA / "shift.kernel").read_text()
    (tmp_path / "cut").write_text(text[: len(text) // 2])
    (tmp_path / "changed").write_text(text.replace("u32", "i32", 1))
    for name in ("cut", "changed"):
        with pytest.raises(kiln.RefusedError, match=name):
            kiln.load_kernel(tmp_path / name)
