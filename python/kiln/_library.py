"""The library behind the package: where it lies, and its functions.

`c` has each function of kiln_c.h under its name without `kiln_`. One that
returns a kiln_error raises it.
"""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ._header import Header
from .errors import KilnError, error_of

PACKAGE = Path(__file__).resolve().parent


def _folders() -> tuple[Path, Path]:
    """Where the libraries and the headers lie."""
    if (PACKAGE / "lib" / "libkiln_c.so.1").exists():
        return PACKAGE / "lib", PACKAGE / "include"
    project = PACKAGE.parent.parent
    if (project / "CMakePresets.json").exists():
        # A source tree: what `make` has built.
        return project / "build" / "lib", project / "include"
    return PACKAGE / "lib", PACKAGE / "include"


LIBRARIES, HEADERS = _folders()
CUDA = LIBRARIES / "kiln" / "cuda"  # libcuda.so.1, libcudart.so.13 and .12


def _load() -> tuple[ctypes.CDLL, Header]:
    path = LIBRARIES / "libkiln_c.so.1"
    if not path.exists():
        raise ImportError(
            f"kiln: {path} was not found; install the wheel of kiln-gpu, or in a source tree "
            "run `ninja -C build kiln_c`"
        )
    try:
        library = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        raise ImportError(f"kiln: {path} cannot be loaded: {error}") from error
    folder = HEADERS / "kiln" / "c"
    header = Header(*((folder / name).read_text() for name in ("kiln_options.h", "kiln_c.h")))
    version = library.kiln_c_version()
    if version != header.constants["KILN_C_VERSION"]:
        raise ImportError(
            f"kiln: {path} has version {version} of the C interface, and {folder} has version "
            f"{header.constants['KILN_C_VERSION']}; install one of them again"
        )
    return library, header


_LIBRARY, HEADER = _load()


def _error_of(error: int) -> KilnError:
    message = _LIBRARY.kiln_error_message(error).decode(errors="replace")
    code = _LIBRARY.kiln_error_code(error)
    _LIBRARY.kiln_error_free(error)
    return error_of(message, code)


def _raising(function: Any) -> Any:
    def call(*arguments: Any) -> None:
        if error := function(*arguments):
            raise _error_of(error)

    return call


def _bind() -> SimpleNamespace:
    functions = SimpleNamespace()
    for name, (result, parameters) in HEADER.functions.items():
        function = getattr(_LIBRARY, name)
        function.restype, function.argtypes = result, parameters
        short = name.removeprefix("kiln_")
        is_failing = name in HEADER.failing
        setattr(functions, short, _raising(function) if is_failing else function)
    return functions


c = _bind()


def structure(name: str) -> Any:
    """A structure of kiln_c.h, zero but for its size."""
    kind = HEADER.structures[name]
    value = kind()
    if kind._fields_[0][0] == "bytes":
        value.bytes = ctypes.sizeof(kind)
    return value


def handle() -> ctypes.c_void_p:
    """Somewhere to put a handle; `ctypes.byref` of it goes last."""
    return ctypes.c_void_p()


def text(value: bytes | None) -> str:
    """A text of the library."""
    return (value or b"").decode(errors="replace")
