"""Launches: what arrays, numbers and structs of Python are to a kernel."""

from __future__ import annotations

import array
import ctypes
import dataclasses
import struct
import sys
import types
from typing import Any

import kiln
import ml_dtypes
import numpy as np
import pytest
from conftest import ADD, DATA
from kiln.tensors import tensor_of


def test_computes_in_place(add):
    x = np.arange(1000, dtype=np.float32)
    out = np.zeros_like(x)
    report = add.launch(8, 128, [out, x, 2.5, 1000])
    assert report.ok and not report.findings
    np.testing.assert_array_equal(out, x + 2.5)
    assert report.launches[0].grid == (8, 1, 1)


@pytest.mark.parametrize("offset", [0, 4, 16, 64])
def test_memory_of_any_alignment(add, offset):
    raw = np.zeros(4096 + offset + 256, dtype=np.uint8)
    begin = -raw.ctypes.data % 256 + offset
    out = raw[begin : begin + 400].view(np.float32)
    x = np.arange(100, dtype=np.float32)
    add.launch(1, 128, [out, x, 1, 100]).raise_for_errors()
    np.testing.assert_array_equal(out, x + 1)
    assert not raw[:begin].any() and not raw[begin + 400 :].any()


def test_arrays_are_aligned_as_on_a_gpu(echoed):
    # What malloc gives begins anywhere; a GPU's allocations begin at 256 bytes.
    raw = np.zeros(1024, dtype=np.uint8)
    for offset in (0, 16, 48):
        begin = -raw.ctypes.data % 256 + offset
        owner = (ctypes.c_char * 64).from_address(raw.ctypes.data + begin)
        whole = np.frombuffer(owner, dtype=np.uint8)
        for part, wanted in ((whole, 0), (whole[8:], 8)):
            (address,) = struct.unpack("Q", echoed(".u64 value", 8, part))
            assert address % 256 == wanted


def test_bf16_is_rounded_as_elsewhere():
    from kiln.arguments import _bfloat16

    for value in (0.0, -0.0, 1.00390625, 1.01171875, 3.3e38, 1e-40, float("inf"), -2.7182818, float("nan")):
        assert _bfloat16(value) == ml_dtypes.bfloat16(value).tobytes()


def test_views_of_one_array_are_one_memory(add):
    # Writes to one view are seen in the other, and a view ends where its array
    # ends, not before.
    both = np.arange(200, dtype=np.float32)
    add.launch(1, 128, [both[100:], both[:100], 1, 100]).raise_for_errors()
    np.testing.assert_array_equal(both[100:], both[:100] + 1)
    out = np.zeros(120, dtype=np.float32)
    report = add.launch(2, 128, {"out": out, "x": both[190:], "by": 0, "n": 12})
    assert [finding.id for finding in report.findings] == ["out-of-bounds"]
    assert "x (800 bytes)" in report.findings[0].message


def test_findings_name_the_arrays(add):
    short, out = np.zeros(10, dtype=np.float32), np.zeros(100, dtype=np.float32)
    report = add.launch(1, 128, {"out": out, "left operand": short, "by": 1, "n": 100})
    assert not report.ok
    assert report.findings[0].buffer == "left operand"
    report = add.launch(1, 128, [out, short, 1, 100])
    assert report.findings[0].buffer == "args[1]"


def test_names_of_the_ptx_give_the_order(add):
    x, out = np.ones(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    add.launch(1, 4, {"n": 4, "by": 1, "x": x, "out": out}).raise_for_errors()
    assert (out == 2).all()


def test_uninitialized_arrays(add):
    out = np.zeros(8, dtype=np.float32)
    x = np.ones(8, dtype=np.float32)
    report = add.launch(1, 8, [out, kiln.uninitialized(np.ones_like(x)), 1, 8])
    assert "uninitialized" in report.findings[0].id
    add.launch(1, 8, [kiln.uninitialized(out), x, 1, 8]).raise_for_errors()
    assert (out == 2).all()


def test_read_only_arrays(add):
    x = np.arange(8, dtype=np.float32)
    out = np.zeros(8, dtype=np.float32)
    x.flags.writeable = False
    add.launch(1, 8, [out, x, 1, 8]).raise_for_errors()
    with pytest.raises(kiln.RefusedError, match="args\\[0\\] is read-only, and the kernel wrote"):
        add.launch(1, 8, [x, out, 1, 8])
    np.testing.assert_array_equal(x, np.arange(8))


class OnlyDlpack:
    """As torch's tensors are: no __array_interface__."""

    def __init__(self, array: Any, **arguments: Any) -> None:
        self.array, self.arguments = array, arguments

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**(arguments | self.arguments))


class OldDlpack(OnlyDlpack):
    """Of before there were versions."""

    def __dlpack__(self, stream: Any = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__(stream=stream)


@pytest.mark.parametrize("kind", [OnlyDlpack, OldDlpack])
def test_dlpack(add, kind):
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, dtype=np.float32)
    add.launch(1, 64, [kind(out), kind(x), 1, 64]).raise_for_errors()
    np.testing.assert_array_equal(out, x + 1)


class TorchTensor:
    """What the package asks of a tensor of torch, over an array of numpy."""

    layout, is_quantized = "torch.strided", False

    def __init__(self, array: Any, place: str = "cpu") -> None:
        self.array, self.shape, self.dtype = array, array.shape, f"torch.{array.dtype.name}"
        self.device = types.SimpleNamespace(type=place, index=None)
        self.is_conj = lambda: False
        self.data_ptr = lambda: array.ctypes.data
        self.element_size = lambda: array.itemsize
        self.stride = lambda: tuple(step // array.itemsize for step in array.strides)
        whole = array if array.base is None else array.base
        self.storage = lambda: types.SimpleNamespace(
            data_ptr=lambda: whole.ctypes.data, nbytes=lambda: whole.nbytes
        )


def test_tensors_of_torch(add, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=TorchTensor))
    x, out = np.arange(64, dtype=np.float32), np.zeros(100, dtype=np.float32)
    add.launch(1, 64, [TorchTensor(out[36:]), TorchTensor(x), 1, 64]).raise_for_errors()
    np.testing.assert_array_equal(out[36:], x + 1)
    for kind in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16):
        tensor = tensor_of(TorchTensor(np.zeros((4, 6), dtype=kind).T))
        assert tensor.type in ("e4m3", "e5m2", "bf16") and tensor.strides[0] == tensor.itemsize
    with pytest.raises(kiln.RefusedError, match="lies on cuda:0; the simulator"):
        add.launch(1, 64, [TorchTensor(out, "cuda"), TorchTensor(x), 1, 64])
    with pytest.raises(kiln.RefusedError, match="a kernel takes memory of the host or of a GPU"):
        add.launch(1, 64, [TorchTensor(out, "meta"), TorchTensor(x), 1, 64])
    sparse = TorchTensor(out)
    sparse.layout = "torch.sparse_coo"
    with pytest.raises(kiln.RefusedError, match="is torch.sparse_coo"):
        add.launch(1, 64, [sparse, TorchTensor(x), 1, 64])


def test_other_memory(add):
    x, out = array.array("f", range(16)), bytearray(64)
    add.launch(1, 16, [memoryview(out), x, 1, 16]).raise_for_errors()
    assert struct.unpack("16f", out) == tuple(range(1, 17))


def test_an_array_without_elements(add):
    out = np.zeros(0, dtype=np.float32)
    add.launch(1, 4, [out, out, 1, 0]).raise_for_errors()
    report = add.launch(1, 4, [out, out, 1, 1])
    assert not report.ok


@pytest.mark.parametrize(
    ("parameter", "size", "value", "wanted"),
    [
        (".u8 value", 1, 255, b"\xff"),
        (".u8 value", 1, True, b"\x01"),
        (".u16 value", 2, -2, b"\xfe\xff"),
        (".u32 value", 4, 2**32 - 1, b"\xff" * 4),
        (".u32 value", 4, np.int32(-1), b"\xff" * 4),
        (".u64 value", 8, -(2**63), b"\0" * 7 + b"\x80"),
        (".u64 value", 8, None, b"\0" * 8),
        (".u64 value", 8, np.uint8(7), b"\x07" + b"\0" * 7),
        (".b8 value[3]", 3, b"abc", b"abc"),
        (".b8 value[3]", 3, bytearray(b"abc"), b"abc"),
        (".align 4 .b8 value[8]", 8, (ctypes.c_int * 2)(1, 2), struct.pack("2i", 1, 2)),
        (".u32 value", 4, ctypes.c_float(1.5), struct.pack("f", 1.5)),
        (".b16 value", 2, np.float16(1.5), np.float16(1.5).tobytes()),
        (".b16 value", 2, ml_dtypes.bfloat16(1.5), b"\xc0\x3f"),
    ],
)
def test_values_by_their_bytes(echoed, parameter, size, value, wanted):
    assert echoed(parameter, size, value) == wanted


def test_a_float_goes_where_the_kernel_reads_one():
    # By what the PTX does with them: f32 and f64 of the same Python number.
    ptx = ADD.replace(".param .f32 by", ".param .f64 by").replace(
        "ld.param.f32 %f1, [by];", ".reg .f64 %d;\nld.param.f64 %d, [by];\ncvt.rn.f32.f64 %f1, %d;"
    )
    x, out = np.zeros(4, dtype=np.float32), np.zeros(4, dtype=np.float32)
    for value in (3, 3.0, np.float32(3), np.float64(3), np.int8(3)):
        out[:] = 0
        kiln.load(ptx).kernel("add").launch(1, 4, [out, x, value, 4]).raise_for_errors()
        assert (out == 3).all()


@dataclasses.dataclass
class Inner:
    count: int
    scale: ctypes.c_double


@dataclasses.dataclass
class Record:
    flag: ctypes.c_uint8
    inner: Inner
    data: Any
    last: np.int16


def test_a_dataclass_lies_as_c_lays_it_out(echoed):
    data = np.zeros(4, dtype=np.float32)
    got = echoed(".align 8 .b8 value[40]", 40, Record(3, Inner(-1, 2.5), None, -2))
    assert got == struct.pack("<B7xi4xdqh6x", 3, -1, 2.5, 0, -2)
    got = echoed(".align 8 .b8 value[40]", 40, Record(3, Inner(-1, 2.5), data, -2))
    assert struct.unpack("<B7xi4xdqh6x", got)[3] != 0


def test_a_tensor_map():
    image = np.arange(64 * 32, dtype=np.float16).reshape(64, 32)
    out = np.zeros((16, 32), dtype=np.float16)
    kernel = kiln.load(DATA / "tma.ptx").kernel("tma")
    box = kiln.TensorMap(image, box=(16, 32))
    report = kernel.launch(1, 32, {"map": box, "out": out, "row": 8})
    report.raise_for_errors()
    assert report.launches[0].interleavings == ("eager", "lazy", "random, seed 0")
    np.testing.assert_array_equal(out, image[8:24])
    # Rows that are farther apart.
    kernel.launch(1, 32, [kiln.TensorMap(np.tile(image, 2)[:, :32], box=(16, 32)), out, 4])
    np.testing.assert_array_equal(out, image[4:20])


def test_what_kernels_print(capsys):
    report = kiln.load(DATA / "print.ptx", threads=1).kernel("print").launch(1, 3)
    assert report.printed == "thread 0\nthread 1\nthread 2\n"
    assert capsys.readouterr().out == report.printed


def test_options_reach_the_launch(race):
    x = np.zeros(1, dtype=np.uint32)
    assert race.launch(1, 64, [x]).verdict == "error"
    assert race.launch(1, 64, [x], allow="race").ok
    assert race.launch(1, 64, [x], allow=["race", "deadlock"]).ok
    warned = race.launch(1, 64, [x], warn=["race"])
    assert warned.ok and warned.warnings[0].id == "race"
    assert race.launch(1, 64, [x], checks=False).ok
    assert not kiln.load(DATA / "lazy_only.ptx").kernel().launch(1, 32, [np.zeros(128, np.uint8)]).ok
    assert (
        kiln.load(DATA / "lazy_only.ptx", interleaving="eager")
        .kernel()
        .launch(1, 32, [np.zeros(128, np.uint8)])
        .ok
    )
    report = kiln.load(DATA / "lazy_only.ptx").kernel().launch(
        1, 32, [np.zeros(128, np.uint8)], interleavings="lazy"
    )
    assert report.launches[0].interleavings == ("lazy",)


def test_a_report_of_a_file(tmp_path, race):
    path = tmp_path / "found.sarif"
    race.launch(1, 64, [np.zeros(1, np.uint32)], report=path)
    assert '"race"' in path.read_text()


def test_sources_of_modules(tmp_path):
    path = tmp_path / "add.ptx"
    path.write_text(ADD)
    for source in (ADD, ADD.encode(), path, str(path), [ADD]):
        assert kiln.load(source).kernels == ("add",)
    for name in ("plain", "zstd", "lz4"):
        path = DATA / f"{name}.fatbin"
        for source in (path, path.read_bytes()):
            module = kiln.load(source)
            assert module.kernels == ("scale",)
            x = np.ones(4, dtype=np.float32)
            module.variable("factors").write(np.array([1, 2, 3, 4], dtype=np.float32))
            module["scale"].launch(1, 4, [x, 4]).raise_for_errors()
            assert (x == 2).all()
            assert module.variable("counter").read() == struct.pack("i", 4)


def test_the_gpu_is_that_of_the_ptx():
    assert "H200" in kiln.load(ADD).device.name
    assert "B200" in kiln.load(ADD.replace("8.0", "8.7").replace("sm_90", "sm_100a")).device.name
    assert "5090" in kiln.load(ADD.replace("sm_90", "sm_80"), gpu="rtx5090").device.name


def test_a_kernel_knows_its_parameters(add):
    assert [(p.name, p.kind, p.type, p.size) for p in add.parameters] == [
        ("out", "pointer", "f32", 8),
        ("x", "pointer", "f32", 8),
        ("by", "number", "f32", 4),
        ("n", "number", "u32", 4),
    ]
    assert add.registers > 0
