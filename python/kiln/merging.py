"""Several reports as one SARIF log, and as files in a folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def merged_sarif(logs: Iterable[str]) -> str:
    """One run with the results of all logs, each result once."""
    merged: dict[str, Any] = {}
    rules: dict[str, int] = {}
    seen: set[str] = set()
    for text in logs:
        log = json.loads(text)
        if not merged:
            merged = json.loads(text)
            merged["runs"][0]["results"] = []
            merged["runs"][0]["tool"]["driver"]["rules"] = []
        run, into = log["runs"][0], merged["runs"][0]
        known = into["tool"]["driver"]["rules"]
        for rule in run["tool"]["driver"]["rules"]:
            if rule["id"] not in rules:
                rules[rule["id"]] = len(known)
                known.append(rule)
        for result in run["results"]:
            key = json.dumps([result["partialFingerprints"], result.get("locations")], sort_keys=True)
            if key not in seen:
                seen.add(key)
                into["results"].append(result | {"ruleIndex": rules[result["ruleId"]]})
    return json.dumps(merged or _EMPTY, indent=2) + "\n"


_EMPTY = {
    "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
    "version": "2.1.0",
    "runs": [{"tool": {"driver": {"name": "kiln", "rules": []}}, "results": []}],
}


def file_name(name: str) -> str:
    """A test's name as that of a file: "tests/test_a.py::test_b[1]" is
    "tests.test_a.py.test_b.1"."""
    return re.sub(r"[^\w.-]+", ".", name).strip(".")[:150] or "test"


class Folder:
    """Where reports are written: a file for each launch, and one SARIF."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._path.mkdir(parents=True, exist_ok=True)
        self._names: dict[str, int] = {}

    def add(self, name: str, formats: dict[str, str]) -> None:
        """A report in its formats: "json", "html"."""
        stem = file_name(name)
        number = self._names[stem] = self._names.get(stem, 0) + 1
        if number > 1:
            stem = f"{stem}.{number}"
        for kind in ("json", "html"):
            if kind in formats:
                (self._path / f"{stem}.{kind}").write_text(formats[kind], encoding="utf-8")

    def finish(self, logs: Iterable[str]) -> None:
        (self._path / "kiln.sarif").write_text(merged_sarif(logs), encoding="utf-8")
