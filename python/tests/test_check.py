"""kiln.check, and what records reports."""

from __future__ import annotations

import json

import kiln
import numpy as np
import pytest
from kiln.merging import merged_sarif


def launch(race, **options):
    return race.launch(1, 64, [np.zeros(1, np.uint32)], **options)


def test_a_block(race):
    with pytest.raises(kiln.FindingError, match="error race") as raised:
        with kiln.check() as checked:
            assert not launch(race).ok
            assert not checked.ok and len(checked.reports) == 1
    assert raised.value.report is checked.reports[0]
    launch(race)
    assert len(checked.reports) == 1


def test_options_of_a_block(race):
    with kiln.check(allow=["race"]):
        launch(race)
        with kiln.check(allow=[]) as inner:
            pass
        assert inner.reports == []
    with kiln.check(interleavings=5) as checked:
        launch(race, allow=["race"])
    assert checked.ok
    with pytest.raises(TypeError, match="'allows' is not an option"):
        kiln.check(allows=["race"])


def test_an_exception_goes_first(race):
    with pytest.raises(KeyError):
        with kiln.check():
            launch(race)
            raise KeyError


def test_functions(race):
    @kiln.check
    def broken(x):
        """Documented."""
        launch(race)

    @kiln.check(allow="race")
    def fine():
        launch(race)
        return 3

    for _ in range(2):
        with pytest.raises(kiln.FindingError):
            broken(1)
        assert fine() == 3
    assert broken.__doc__ == "Documented."


def test_logs_are_merged(race, add):
    logs = [launch(race).to_sarif(), launch(race).to_sarif()]
    short = add.launch(1, 8, [np.zeros(8, np.float32), np.zeros(4, np.float32), 1, 8])
    merged = json.loads(merged_sarif([*logs, short.to_sarif()]))
    run = merged["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["race", "out-of-bounds"]
    rules = run["tool"]["driver"]["rules"]
    assert [rules[result["ruleIndex"]]["id"] for result in run["results"]] == ["race", "out-of-bounds"]
    assert json.loads(merged_sarif([]))["runs"][0]["results"] == []
