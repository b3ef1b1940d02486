"""docs/python.md: its code runs, and says what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import DATA

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.skipif(not PAGE.exists(), reason="the page is in the source tree")
def test_the_page(monkeypatch, capsys):
    monkeypatch.chdir(DATA)
    page = PAGE.read_text()
    names: dict[str, object] = {}
    for code in re.findall(r"^```python\n(.*?)^```", page, re.M | re.S):
        if "import triton" not in code:  # tests/frameworks runs those
            exec(code, names)
    printed = capsys.readouterr().out
    told = re.findall(r"^```text\n(.*?)^```", page, re.M | re.S)
    assert told
    for line in told[0].splitlines():
        # Addresses are those of a run.
        assert re.sub("0x[0-9a-f]+", "0x", line) in re.sub("0x[0-9a-f]+", "0x", printed)
