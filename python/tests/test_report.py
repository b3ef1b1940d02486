"""Reports: every field of the JSON, and every form."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path

import kiln
import numpy as np
import pytest

SCHEMA = Path(__file__).parents[2] / "docs" / "report.schema.json"


@pytest.fixture(scope="module")
def found(race) -> kiln.Report:
    return race.launch(1, 64, {"sums": np.zeros(1, np.uint32)})


def test_a_finding_has_all_that_the_json_has(found):
    finding = found.findings[0]
    told = json.loads(found.to_json())["findings"][0]

    def plain(value):
        return list(value) if isinstance(value, tuple) else value

    for name, value in told.items():
        got = getattr(finding, name)
        if name == "other":
            assert {key: plain(getattr(got, key)) for key in value} == value
        else:
            assert plain(got) == value
    assert finding.id == "race" and finding.grade == "error"
    assert finding.other.who.startswith("thread ") and finding.other.access == "write"
    assert str(finding).startswith("error race at PTX:10: ")
    assert str(finding) in str(found)


@pytest.mark.skipif(not SCHEMA.exists(), reason="the schema is in the source tree")
@pytest.mark.parametrize(
    ("place", "kind"),
    [
        (("$defs", "finding"), kiln.Finding),
        (("$defs", "finding", "properties", "other"), kiln.Other),
        (("$defs", "stack", "items"), kiln.Frame),
        (("$defs", "launch"), kiln.Launch),
    ],
)
def test_dataclasses_have_all_that_the_schema_has(place, kind):
    schema = json.loads(SCHEMA.read_text())
    for key in place:
        schema = schema[key]
    names = {field.name for field in dataclasses.fields(kind)}
    assert set(schema["properties"]) <= names
    required = {
        field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING
    }
    assert required <= set(schema["required"])


def test_forms(found, tmp_path):
    assert not found and not found.ok and found.verdict == "error"
    assert repr(found) == "<kiln.Report: error: race>"
    sarif = json.loads(found.to_sarif())
    assert sarif["runs"][0]["results"][0]["ruleId"] == "race"
    for name, begin in (("a.json", '{\n  "version"'), ("a.sarif", '{\n  "$schema"'), ("a.txt", "error race")):
        found.save(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(begin)
    with pytest.raises(kiln.FindingError, match="error race at PTX:10") as raised:
        found.raise_for_errors()
    assert raised.value.report is found


def test_html_is_escaped(race):
    report = race.launch(1, 64, {"<script>": np.zeros(1, np.uint32)})
    page = report._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "race" in page


def test_copies(found, tmp_path):
    copy = pickle.loads(pickle.dumps(found))
    copy.save(tmp_path / "b.sarif")
    found.save(tmp_path / "a.sarif")
    assert (tmp_path / "a.sarif").read_text() == (tmp_path / "b.sarif").read_text()
    assert copy.findings == found.findings and str(copy) == str(found)
    assert copy.to_sarif() == found.to_sarif()
    with pytest.raises(kiln.RefusedError):
        copy._format("timeline")


def test_what_is_right(add):
    x = np.zeros(4, np.float32)
    report = add.launch(1, 4, [x, x, 1, 4])
    assert report and report.raise_for_errors() is report and not report.errors
    assert report.launches[0].single_because
    assert report.stats["instructions"] > 0


def test_explanations():
    explained = kiln.explain("race")
    assert explained.grade == "error" and "Fix: " in str(explained)
    assert "race" in kiln.finding_ids() and sorted(kiln.finding_ids()) == kiln.finding_ids()


def test_keys_of_a_later_version_are_left_out(found):
    data = json.loads(found.to_json())
    data["findings"][0]["mood"] = "bad"
    data["news"] = 1
    later = kiln.Report({"json": json.dumps(data)}, ["a line"])
    assert later.findings[0].id == "race" and later.findings[0].text == "a line"
