"""The declarations of kiln_c.h, as ctypes has them.

The header lies beside the library, and is read when `kiln` is imported: what
the library declares is written down once, in C. Reading it takes 3 ms.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

_TYPES: dict[str, Any] = {
    "void": None,
    "char": ctypes.c_char,
    "int": ctypes.c_int,
    "unsigned": ctypes.c_uint,
    "double": ctypes.c_double,
    "size_t": ctypes.c_size_t,
    "int64_t": ctypes.c_int64,
    "uint8_t": ctypes.c_uint8,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_DECLARATION = re.compile(r"(?P<type>.*?[\s*])(?P<name>\w+)\s*(?P<array>\[\d+\])?$", re.S)


class Header:
    """Structures, function types and functions of headers.

    `structures` has a ctypes.Structure for each, `callbacks` a CFUNCTYPE, and
    `functions` what a function returns and takes, by its name.
    """

    def __init__(self, *texts: str) -> None:
        self.structures: dict[str, type[ctypes.Structure]] = {}
        self.callbacks: dict[str, Any] = {}
        self.functions: dict[str, tuple[Any, list[Any]]] = {}
        self.failing: set[str] = set()  # functions that return a kiln_error
        self.constants: dict[str, int] = {}
        self._handles: set[str] = set()
        for text in texts:
            self._read(text)

    def _read(self, text: str) -> None:
        for name, value in re.findall(r"^#define (KILN_\w+) (\d+)$", text, re.M):
            self.constants[name] = int(value)
        text = _COMMENT.sub("", text)
        text = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*$", "", text, flags=re.M)
        text = text.replace('extern "C" {', "").strip().removesuffix("}")
        while text := text.strip():
            text = self._statement(text)

    def _statement(self, text: str) -> str:
        """Take in the first declaration; what follows it."""
        end = re.search(r"[;{]", text)
        if not end:
            raise ValueError(f"kiln_c.h ends within a declaration: {text[:80]!r}")
        if end.group() == ";":
            self._declare(" ".join(text[: end.start()].split()))
            return text[end.end() :]
        close = text.index("}")
        name, rest = text[close + 1 :].split(";", 1)
        self._structure(name.strip(), text[end.end() : close])
        return rest

    def _structure(self, name: str, body: str) -> None:
        fields: list[tuple[str, Any]] = []
        for member in filter(None, (part.strip() for part in body.split(";"))):
            first, *others = (part.strip() for part in member.split(","))
            kind, field, array = self._member(first)
            fields.append((field, array))
            for other in others:
                # A '*' belongs to one name; no member of ours has several.
                _, field, array = self._member(f"{kind} {other}")
                fields.append((field, array))
        self.structures[name] = type(name, (ctypes.Structure,), {"_fields_": fields})

    def _member(self, text: str) -> tuple[str, str, Any]:
        match = _DECLARATION.match(text)
        if not match:
            raise ValueError(f"kiln_c.h has a member that is not understood: {text!r}")
        kind = self._type(match["type"])
        if match["array"]:
            kind = kind * int(match["array"][1:-1])
        return match["type"], match["name"], kind

    def _declare(self, text: str) -> None:
        if handle := re.fullmatch(r"typedef struct (\w+) (\w+)", text):
            self._handles.add(handle[1])
        elif callback := re.fullmatch(r"typedef (.+?)\(\*(\w+)\)\((.*)\)", text):
            self.callbacks[callback[2]] = ctypes.CFUNCTYPE(
                self._type(callback[1]), *self._parameters(callback[3])
            )
        elif function := re.fullmatch(r"KILN_C_API (.+?)(\w+)\((.*)\)", text):
            self.functions[function[2]] = (
                self._type(function[1]),
                self._parameters(function[3]),
            )
            if function[1].startswith("kiln_error *"):
                self.failing.add(function[2])
        else:
            raise ValueError(f"kiln_c.h has a declaration that is not understood: {text!r}")

    def _parameters(self, text: str) -> list[Any]:
        if text.strip() in ("", "void"):
            return []
        types = []
        for parameter in text.split(","):
            match = _DECLARATION.match(parameter.strip())
            if not match:
                raise ValueError(f"kiln_c.h has a parameter that is not understood: {parameter!r}")
            types.append(self._type(match["type"]))
        return types

    def _type(self, text: str) -> Any:
        words = text.replace("*", " * ").split()
        words = [word for word in words if word not in ("const", "struct")]
        name, stars = words[0], words.count("*")
        if len(words) != 1 + stars:
            raise ValueError(f"kiln_c.h has a type that is not understood: {text!r}")
        kind: Any
        if name in self._handles or (name in ("void", "char") and stars):
            kind = ctypes.c_char_p if name == "char" else ctypes.c_void_p
            stars -= 1
        elif name in self.structures:
            kind = self.structures[name]
        elif name in self.callbacks:
            kind = self.callbacks[name]
        elif name in _TYPES:
            kind = _TYPES[name]
        else:
            raise ValueError(f"kiln_c.h has a type that is not understood: {text!r}")
        for _ in range(stars):
            kind = ctypes.POINTER(kind)
        return kind
