"""`pytest --kiln`: findings fail tests."""

from __future__ import annotations

import json

import pytest
from conftest import RACE

TESTS = f"""
import array, kiln, pytest

def launch(**options):
    x = array.array("I", [0])
    return kiln.load({RACE!r}).kernel().launch(1, 64, [x], **options)

def test_race():
    launch()

@pytest.mark.kiln(allow=["race"])
def test_allowed():
    assert launch().ok

@pytest.mark.kiln(False)
def test_unasked():
    assert not launch().ok

def test_fails_itself():
    launch()
    assert 1 == 2

def test_nothing():
    pass

@pytest.mark.kiln(colour="red")
def test_marked_wrong():
    pass
"""


@pytest.fixture
def tests(pytester):
    pytester.makepyfile(test_kernels=TESTS)
    return pytester


def test_without_the_option_nothing_is_checked(tests):
    tests.runpytest_subprocess("-k", "race").assert_outcomes(passed=1)


@pytest.mark.parametrize("words", [[], ["-n", "2"]], ids=["one", "xdist"])
def test_findings_fail_their_tests(tests, words):
    result = tests.runpytest_subprocess("--kiln", "--strict-markers", *words)
    result.assert_outcomes(passed=3, failed=3)
    result.stdout.fnmatch_lines_random(
        [
            "*Kiln found errors:",
            "*error race at PTX:10: *",
            "FAILED *test_race*",
            "FAILED *test_fails_itself*",
            "*the marker kiln: 'colour' is not an option; *",
            "kiln: 4 launches checked, 3 with errors",
        ]
    )


@pytest.mark.parametrize("words", [[], ["-n", "2"]], ids=["one", "xdist"])
def test_reports_are_written_once(tests, words):
    tests.runpytest_subprocess("--kiln-report=found", *words)
    folder = tests.path / "found"
    log = json.loads((folder / "kiln.sarif").read_text())
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["race"]
    assert len(log["runs"]) == 1 and len(log["runs"][0]["tool"]["driver"]["rules"]) == 1
    names = sorted(path.name for path in folder.glob("*.json"))
    assert names == [f"test_kernels.py.test_{name}.json" for name in ("allowed", "fails_itself", "race", "unasked")]
    assert json.loads((folder / names[2]).read_text())["verdict"] == "error"


def test_a_folder_that_cannot_be(tests):
    (tests.path / "file").write_text("")
    result = tests.runpytest_subprocess("--kiln-report=file/found")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--kiln-report: file/found: *"])
