#!/usr/bin/env python3
"""The table of docs/litmus.md, from what was seen:

    table.py --record GPU.json SIM.json OUT.json   keep what matters of two runs
    table.py --write                               put the table into the page
    table.py --check SIM.json                      hold both to a run of today"""

import collections
import json
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RESULTS = os.path.join(ROOT, "bench/results/h200/litmus.json")
PAGE = os.path.join(ROOT, "docs/litmus.md")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"

FAMILIES = [
    ("mp_", "message passing: weak, relaxed, release, fences, volatile, by scope"),
    ("sb_", "store buffering"), ("lb_", "load buffering"), ("w2_", "2+2W"), ("r_", "R"),
    ("s_", "S"), ("iriw_", "IRIW"), ("wrc_", "write to read causality"),
    ("rmw_", "an exchange between release and acquire"),
    ("co", "coherence of one location"), ("exch_", "two exchanges"), ("bar_", "bar.sync"),
    ("named_", "bar.arrive, bar.sync and bar.red"),
    ("bulk_store", "bulk stores: proxy fences, groups"),
    ("bulk_group", "bulk groups: how many may be pending"),
    ("bulk_load", "bulk loads: waits, proxy fences, bytes"),
    ("bulk_remote", "bulk copies to another CTA"), ("cp_async", "cp.async: groups, mbarriers"),
    ("mbarrier", "mbarriers: phases, scopes, counts"),
    ("cluster_barrier", "cluster barriers"), ("remote_arrive_", "arrivals at another CTA"),
    ("st_async", "st.async"), ("red_async", "red.async"), ("multicast", "multicast"),
    ("tcgen05", "tensor memory"),
]


def family_of(name, core):
    if name in core:
        return "written by hand (tests/litmus/core)"
    for prefix, family in FAMILIES:
        if name.startswith(prefix):
            return family
    raise SystemExit(f"{name} is of no family of table.py")


def core_names():
    folder = os.path.join(ROOT, "tests/litmus/core")
    return {file.removesuffix(".litmus") for file in os.listdir(folder)}


def record(gpu_path, sim_path, out):
    def load(path):
        with open(path) as file:
            return {test["name"]: test for test in json.load(file)["tests"]}
    gpu, sim = load(gpu_path), load(sim_path)
    tests = {}
    for name, test in sorted(sim.items()):
        seen = gpu.get(name)
        tests[name] = [test["expect"], test["verdict"]] + \
            ([seen["seen"], seen["runs"]] if seen else [])
    with open(RESULTS) as file:
        old = json.load(file) if os.path.exists(out) else {}
    old["tests"] = tests
    with open(out, "w") as file:
        write(old, file)


def write(results, file):
    head = {k: v for k, v in results.items() if k != "tests"}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}"
                      for k, v in sorted(results["tests"].items()))
    lines.append(f' "tests": {{\n{rows}\n }}')
    file.write("{\n" + ",\n".join(lines) + "\n}\n")


def table(results):
    core = core_names()
    rows = collections.OrderedDict()
    for _, family in FAMILIES:
        rows[family] = collections.Counter()
    rows["written by hand (tests/litmus/core)"] = collections.Counter()
    for name, test in results["tests"].items():
        row = rows[family_of(name, core)]
        expect, verdict, *gpu = test
        row[expect] += 1
        row["stronger"] += verdict == "stronger"
        row["wrong"] += verdict not in ("agrees", "stronger")
        if gpu and gpu[0]:
            row["gpu " + expect] += 1
        if gpu:
            row["gpu"] += 1
    total = collections.Counter()
    for row in rows.values():
        total.update(row)
    rows["all"] = total
    text = "| tests | forbidden | seen on H200 | allowed | seen on H200 | stronger here | " \
        "undefined | seen on H200 |\n|---|---|---|---|---|---|---|---|\n"
    for family, row in rows.items():
        text += f"| {family} | {row['forbidden']} | {row['gpu forbidden']} | {row['allowed']} | " \
            f"{row['gpu allowed']} | {row['stronger']} | {row['undefined']} | " \
            f"{row['gpu undefined']} |\n"
    return text


def page_with(text):
    with open(PAGE) as file:
        page = file.read()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    return page, page[:begin] + "\n" + text + "\n" + page[end:]


def main():
    if sys.argv[1] == "--record":
        return record(*sys.argv[2:5])
    with open(RESULTS) as file:
        results = json.load(file)
    old, new = page_with(table(results))
    if sys.argv[1] == "--write":
        with open(PAGE, "w") as file:
            file.write(new)
        return None
    if old != new:
        raise SystemExit("docs/litmus.md is not what bench/results/h200/litmus.json says; "
                         "tests/litmus/table.py --write")
    with open(sys.argv[2]) as file:
        today = {t["name"]: t["expect"] for t in json.load(file)["tests"]}
    known = {name: test[0] for name, test in results["tests"].items()}
    changed = sorted(set(today.items()) ^ set(known.items()))
    if changed:
        raise SystemExit(f"bench/results/h200/litmus.json has other tests: {changed[:6]}")
    wrong = [n for n, t in results["tests"].items() if t[0] == "forbidden" and t[2:] and t[2]]
    if wrong:
        raise SystemExit(f"forbidden, and an H200 has shown it: {wrong}")
    return None


if __name__ == "__main__":
    main()
