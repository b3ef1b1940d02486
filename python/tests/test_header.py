"""The C header, as the package reads it."""

from __future__ import annotations

import ctypes

import kiln
import pytest
from kiln._header import Header
from kiln._library import HEADER, c


def test_every_function_is_bound():
    assert len(HEADER.functions) > 60
    for name in HEADER.functions:
        assert callable(getattr(c, name.removeprefix("kiln_")))


def test_types():
    result, parameters = HEADER.functions["kiln_explore"]
    assert result is ctypes.c_void_p and len(parameters) == 5
    launch = HEADER.structures["kiln_launch"]
    assert [name for name, _ in launch._fields_][:6] == ["bytes", "module", "entry", "grid", "block", "cluster"]
    assert ctypes.sizeof(launch.grid.size if False else ctypes.c_uint32 * 3) == launch.grid.size
    assert HEADER.structures["kiln_options"].seed.size == 8
    assert HEADER.functions["kiln_device_free"][0] is None


def test_options_are_those_of_the_table():
    names = []
    for index in range(c.option_count()):
        row = HEADER.structures["kiln_option"]()
        row.bytes = ctypes.sizeof(row)
        c.option_at(index, ctypes.byref(row))
        names.append(row.key.decode())
    assert names == kiln.option_names()


def test_a_declaration_of_each_kind():
    header = Header(
        "#define KILN_C_VERSION 9\ntypedef struct kiln_error kiln_error;\ntypedef struct kiln_a {\n"
        "  size_t bytes; ///< of it\n  uint32_t x[3], y;\n  const char *name;\n} kiln_a;\n"
        "typedef void (*kiln_told)(void *context, uint64_t done);\n"
        "KILN_C_API kiln_error *kiln_do(const kiln_a *a, kiln_told told,\n  double *x);\n"
        "KILN_C_API void kiln_end(void);\n"
    )
    assert header.constants == {"KILN_C_VERSION": 9} and header.failing == {"kiln_do"}
    assert ctypes.sizeof(header.structures["kiln_a"]) == 32
    assert header.functions["kiln_do"][1][1] is header.callbacks["kiln_told"]
    assert header.functions["kiln_end"] == (None, [])


@pytest.mark.parametrize(
    "text",
    ["enum kiln_a { b };", "KILN_C_API long kiln_a(void);", "int x = 3;", "KILN_C_API int kiln_a(float x);"],
)
def test_what_is_not_understood_is_said(text):
    with pytest.raises(ValueError, match="kiln_c.h .* not understood"):
        Header(text)
