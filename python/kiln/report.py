"""What came of launches: a Report with its findings, as docs/report.schema.json
has it, key for key."""

from __future__ import annotations

import ctypes
import dataclasses
import html
import json
import os
import typing
from typing import Any

from ._library import c, structure, text
from .errors import FindingError, RefusedError


def _read(kind: Any, value: Any) -> Any:
    """A value of the JSON as the type of a field; keys of a later version are
    left out."""
    arguments = typing.get_args(kind)
    if value is None:
        return None
    if arguments and type(None) in arguments:
        return _read(arguments[0], value)
    if typing.get_origin(kind) is tuple:
        return tuple(_read(arguments[0], element) for element in value)
    if not dataclasses.is_dataclass(kind):
        return value
    types = typing.get_type_hints(kind)
    made: Any = kind
    return made(**{name: _read(types[name], value[name]) for name in types if name in value})


@dataclasses.dataclass(frozen=True)
class Frame:
    """A function that was inlined, with its line."""

    function: str
    file: str
    line: int


@dataclasses.dataclass(frozen=True)
class Other:
    """The access that a finding collides with."""

    who: str  #: "thread 32 of CTA (0, 0, 0)"
    access: str  #: "read" or "write"
    file: str
    line: int
    ptx_line: int
    stack: tuple[Frame, ...] = ()
    cta: tuple[int, ...] | None = None
    unit: str = ""  #: that makes the access: "warp", "tma", "wgmma"
    number: int | None = None  #: of the warp, or of the warpgroup
    time: int | None = None  #: in warp instructions; where details are kept


@dataclasses.dataclass(frozen=True)
class Waiting:
    """Threads of a deadlock, and what they wait for."""

    cta: tuple[int, ...]
    first: int  #: thread of the CTA
    last: int
    kind: str  #: "mbarrier", "barrier", "lanes", ...
    what: str
    source: str  #: who has sent, who could have
    file: str
    line: int
    ptx_line: int
    on: tuple[int, ...] = ()  #: those of the list that could let them go on
    object: str = ""
    address: int | None = None


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that a check found; `kiln.explain(finding.id)` says what it
    means. `str()` is the line that the command prints."""

    id: str
    grade: str  #: "note", "warning" or "error"
    message: str
    file: str  #: "" where it is not known
    line: int
    ptx_line: int
    count: int  #: how often it was found at these places
    cta: tuple[int, ...] | None = None
    thread: int | None = None  #: in its CTA
    space: str = ""  #: of the address: "global", "shared"
    address: int | None = None
    buffer: str = ""  #: name of what lies at the address, or nearest to it
    instruction: str = ""
    kernel: str = ""
    launches: tuple[int, ...] = ()  #: numbers of those that show it, from 1
    interleavings: tuple[str, ...] = ()  #: that show it
    other: Other | None = None
    stack: tuple[Frame, ...] = ()
    bytes: int | None = None  #: of the address on, that both accesses touch
    missing: str = ""  #: what would have ordered the two accesses
    time: int | None = None  #: in warp instructions; where details are kept
    waits: tuple[Waiting, ...] = ()  #: of a deadlock: who waits for whom
    launch_file: str = ""  #: that it is of, where several were run
    listing: int | None = None  #: index in data["listings"]
    text: str = ""  #: all of it, in a line

    def __str__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True)
class Launch:
    """A launch, as a report has it."""

    launch: int  #: its number, from 1
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    cluster: tuple[int, ...]
    checked: bool
    finished: bool  #: no finding ended it
    interleavings: tuple[str, ...]  #: that it ran in
    stats: dict[str, Any]
    single_because: str = ""  #: why it ran in one where more were asked for
    launch_file: str = ""
    listing: int | None = None  #: index in data["listings"]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A buffer or printed lines, held against what they should be."""

    interleaving: str
    elements: int
    wrong: int
    buffer: str = ""
    printf: str = ""
    launch_file: str = ""


class _Result:
    """A kiln_result, and what was asked of it; freed with the object."""

    def __init__(self, result: Any) -> None:
        self._handle = result

    def format(self, name: str) -> str:
        formatted = ctypes.c_char_p()
        c.result_format(self._handle, name.encode(), ctypes.byref(formatted))
        return text(formatted.value)

    def texts(self) -> list[str]:
        """Of the findings, a line each."""
        lines = []
        for index in range(c.result_finding_count(self._handle)):
            finding = structure("kiln_finding")
            c.result_finding(self._handle, index, ctypes.byref(finding))
            lines.append(text(finding.text))
        return lines

    def save(self, path: str) -> None:
        c.result_save(self._handle, os.fsencode(path))

    def printed(self) -> str:
        return text(c.result_printed(self._handle))

    def __del__(self) -> None:
        if c is not None:
            c.result_free(self._handle)


class Report:
    """What came of launches.

    `print(report)` shows it as the `kiln` command does; true where no finding
    is an error.
    """

    def __init__(self, formats: dict[str, str], texts: list[str], printed: str = "") -> None:
        self._formats = formats
        self._texts = texts
        self._result: _Result | None = None
        #: what the kernels printed in the first interleaving
        self.printed = printed
        #: the JSON, with what has no member of its own here
        self.data: dict[str, Any] = json.loads(formats["json"])
        data = self.data
        self.version: int = data["version"]  #: of the form of the JSON
        self.kiln: str = data["kiln"]  #: the version of Kiln that wrote it
        self.verdict: str = data["verdict"]  #: "ok", "wrong", "error" or "refused"
        self.refusal: str = data.get("refusal", "")  #: why nothing has run
        self.launches: tuple[Launch, ...] = _read(tuple[Launch, ...], data["launches"])
        self.findings: tuple[Finding, ...] = tuple(
            dataclasses.replace(_read(Finding, value), text=line)
            for value, line in zip(data["findings"], texts)
        )
        #: of findings beyond the option max_findings
        self.findings_left_out: int = data.get("findings_left_out", 0)
        self.comparisons: tuple[Comparison, ...] = _read(
            tuple[Comparison, ...], data["comparisons"]
        )
        self.stats: dict[str, Any] = data["stats"]

    @classmethod
    def _of(cls, handle: Any) -> Report:
        """Of a kiln_result, which the report keeps."""
        result = _Result(handle)
        report = cls({"json": result.format("json")}, result.texts(), result.printed())
        report._result = result
        return report

    def _format(self, name: str) -> str:
        """The report in one of the library's formats."""
        if name not in self._formats and self._result is None:
            raise RefusedError(f"a report that was copied has no format '{name}'")
        if name not in self._formats and self._result is not None:
            self._formats[name] = self._result.format(name)
        return self._formats[name]

    @property
    def ok(self) -> bool:
        """No finding is an error, and no comparison failed."""
        return self.verdict == "ok"

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.grade == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.grade == "warning")

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        return self._format("text")

    def __repr__(self) -> str:
        ids = ", ".join(finding.id for finding in self.findings)
        return f"<kiln.Report: {self.verdict}{': ' + ids if ids else ''}>"

    def __reduce__(self) -> Any:
        formats = {name: self._format(name) for name in ("json", "text", "sarif")}
        return Report, (formats, self._texts, self.printed)

    def to_json(self) -> str:
        """As docs/report.schema.json has it."""
        return self._formats["json"]

    def to_sarif(self) -> str:
        """SARIF 2.1.0, for code hosts and editors."""
        return self._format("sarif")

    def to_html(self) -> str:
        """A page, where this version of the library writes one; else ""."""
        try:
            return self._format("html")
        except RefusedError:
            return ""

    def save(self, path: str | os.PathLike[str]) -> None:
        """As the name ends: .sarif, .txt, else JSON; and what else the library
        writes. Of a copy those three."""
        name = os.fspath(path)
        if self._result is not None:
            self._result.save(name)
            return
        written = self.to_json()
        if name.endswith(".sarif"):
            written = self.to_sarif()
        elif name.endswith(".txt"):
            written = str(self)
        with open(name, "w", encoding="utf-8") as file:
            file.write(written)

    def raise_for_errors(self) -> Report:
        """Raise a FindingError, which has the report, where `ok` is false."""
        if not self.ok:
            raise FindingError(str(self).rstrip(), self)
        return self

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = "".join(
            f'<tr><td><b style="color:{_COLOURS.get(finding.grade, "inherit")}">'
            f"{html.escape(finding.grade)}</b></td><td>{html.escape(finding.id)}</td>"
            f"<td>{html.escape(_place(finding))}</td>"
            f'<td style="text-align:left;white-space:pre-wrap">{html.escape(finding.message)}'
            f"</td></tr>"
            for finding in self.findings
        )
        table = (
            "<table><tr><th></th><th>finding</th><th>at</th>"
            f'<th style="text-align:left">what</th></tr>{rows}</table>'
            if rows
            else ""
        )
        ran = ", ".join(
            f"{html.escape(launch.kernel)} ({html.escape(', '.join(launch.interleavings))})"
            for launch in self.launches
        )
        return f"<div><p><b>{html.escape(self.verdict)}</b> {ran}</p>{table}</div>"


_COLOURS = {"error": "#c0392b", "warning": "#b9770e", "note": "#21618c"}


def _place(finding: Finding) -> str:
    return f"{finding.file}:{finding.line}" if finding.file else ""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What an id of a finding means."""

    id: str
    cause: str  #: what happened, and what hardware makes of it
    broken: str  #: the smallest kernel text that does it
    repair: str
    grade: str
    ends_launch: bool

    def __str__(self) -> str:
        return f"{self.id} ({self.grade})\n\n{self.cause}\n\nFix: {self.repair}"


def explain(id: str) -> Explanation:
    """What a finding means, and how it is repaired, as `kiln explain` says."""
    row = structure("kiln_explanation")
    c.explain(id.encode(), ctypes.byref(row))
    return Explanation(
        id=text(row.id),
        cause=text(row.cause),
        broken=text(row.broken),
        repair=text(row.repair),
        grade=("note", "warning", "error")[row.grade],
        ends_launch=bool(row.ends_launch),
    )


def finding_ids() -> list[str]:
    """Every id that a finding can have, in alphabetical order."""
    return [text(c.explanation_id(i)) for i in range(c.explanation_count())]
