"""The options of the checks, by their names.

The table is the library's (docs/options.md): nothing of it is repeated here. A
keyword of `launch`, of `kiln.check` and of the pytest marker is a row of it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Mapping
from typing import Any

from ._library import HEADER
from .errors import RefusedError

_STRUCTURE = HEADER.structures["kiln_options"]
_FIELDS: Any = _STRUCTURE._fields_
_MEMBERS: dict[str, Any] = dict(_FIELDS[1:])


def option_names() -> list[str]:
    """The names of all options: interleaving, interleavings, seed, checks, ..."""
    return list(_MEMBERS)


def _refuse(name: str, value: object, accepted: str) -> RefusedError:
    return RefusedError(f"{name} is {value!r}; it takes {accepted}")


def _text(name: str, value: object) -> bytes:
    if isinstance(value, bool):
        return b"on" if value else b"off"
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        if isinstance(text, bytes):
            text = os.fsdecode(text)
    elif isinstance(value, (int, float)):
        text = str(value)
    elif isinstance(value, Iterable):
        return b",".join(_text(name, part) for part in value)
    else:
        raise _refuse(name, value, "a text, a number, True or False, or a list of them")
    if "\0" in text:
        raise _refuse(name, value, "a text without a zero byte")
    return text.encode(errors="surrogateescape")


def _set(options: ctypes.Structure, name: str, kind: Any, value: object) -> None:
    if kind is ctypes.c_char_p:
        setattr(options, name, _text(name, value))
    elif kind is ctypes.c_double:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise _refuse(name, value, "a number of seconds from 0 on")
        setattr(options, name, float(value))
    elif kind is ctypes.c_int64:
        if not isinstance(value, (bool, int)) or value not in (0, 1):
            raise _refuse(name, value, "True or False")
        setattr(options, name, int(value))
    else:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise _refuse(name, value, "a whole number from 0 on")
        number = value.__index__()
        if not 0 <= number < 2**64 - 1:
            raise _refuse(name, value, "a whole number from 0 on, below 2**64 - 1")
        setattr(options, name, number)


def _unset(kind: Any) -> Any:
    """What a member says nothing with (KILN_OPTIONS_INIT)."""
    if kind is ctypes.c_char_p:
        return None
    return 2**64 - 1 if kind is ctypes.c_uint64 else -1


def make_options(given: Mapping[str, object]) -> ctypes.Structure:
    """The structure of the C interface; None is as if it were not given."""
    options = _STRUCTURE()
    options.bytes = ctypes.sizeof(_STRUCTURE)
    for name, kind in _MEMBERS.items():
        setattr(options, name, _unset(kind))
    for name, value in given.items():
        if name == "interleavings" and isinstance(value, str):
            name = "interleaving"  # "all", "lazy": which, not how many
        if name not in _MEMBERS:
            known = ", ".join(_MEMBERS)
            raise TypeError(f"'{name}' is not an option; the options are {known}")
        if value is not None:
            _set(options, name, _MEMBERS[name], value)
    return options
