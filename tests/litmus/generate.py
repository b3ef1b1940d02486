#!/usr/bin/env python3
"""Write litmus tests: generate.py FOLDER.

Those of the generic proxy are cycles of accesses of two to four threads, with
every way of ordering them that PTX has; their expectations follow from the
memory model (ptx_model.py). Those of the asynchronous machine are patterns with
one edge after another taken away or weakened; theirs follow from the sentence of
the PTX ISA that each names."""

import itertools
import os
import sys

from ptx_model import Event, Model

RACES = "race scope memory-fence acquire-fence relaxed-after-read"
tests = {}


def add(name, expect, rule, body, condition, findings="", target=""):
    assert name not in tests, name
    text = f"litmus {name}\n"
    if target:
        text += f"target {target}\n"
    text += f"expect {expect}\n"
    if findings:
        text += f"finding {findings}\n"
    tests[name] = f"{text}rule {rule}\n{body}exists {condition}\n"


# --- The generic proxy -------------------------------------------------------

# What the literature says of the classical ones.
KNOWN = {"mp_gpu_rel_gpu_acq_gpu_weak": "forbidden", "mp_gpu_rel_cta_acq_gpu_weak": "undefined",
         "mp_gpu_rlx_gpu_rlx_gpu_relaxed": "allowed", "sb_gpu_sc_gpu_sc_gpu": "forbidden",
         "sb_gpu_acqrel_gpu_acqrel_gpu": "allowed", "lb_gpu_none_none": "allowed",
         "lb_gpu_acqrel_gpu_acqrel_gpu": "forbidden", "iriw_gpu_sc_gpu": "forbidden",
         "iriw_gpu_acq_rel_gpu": "allowed", "wrc_gpu_release_acquire_gpu": "forbidden",
         "wrc_gpu_relaxed_relaxed_gpu": "allowed", "corr_gpu_relaxed_sys": "forbidden",
         "exch_gpu_relaxed_sys": "forbidden", "bar_weak_0": "forbidden"}

PLACES = {"cta": [0, 0, 0, 0], "cluster": [0, 1, 1, 0], "gpu": [0, 1, 2, 3]}


class Thread:
    """Collects events of the model and lines of PTX side by side."""

    def __init__(self, number):
        self.number, self.events, self.lines = number, [], []

    def _add(self, line, guard=None, **fields):
        self.events.append(Event(self.number, len(self.events), guard=guard, **fields))
        self.lines.append(f"  {'@p0 ' if guard else ''}{line}")

    @staticmethod
    def _words(how):
        """'relaxed.gpu' as modifiers, semantics and scope."""
        if how == "volatile":
            return "volatile", "relaxed", "sys"
        if how == "weak":
            return "weak", "weak", "sys"
        semantics, scope = how.split(".")
        return how, semantics, scope

    def load(self, how, register, location, guard=None):
        words, semantics, scope = self._words(how)
        self._add(f"ld.{words}.global.u32 {register}, [{location}];", guard, kind="R",
                  location=location, semantics=semantics, scope=scope, register=register)

    def store(self, how, location, value):
        words, semantics, scope = self._words(how)
        self._add(f"st.{words}.global.u32 [{location}], {value};", kind="W",
                  location=location, value=value, semantics=semantics, scope=scope)

    def exchange(self, how, register, location, value):
        words, semantics, scope = self._words(how)
        self._add(f"atom.{words}.global.exch.b32 {register}, [{location}], {value};", kind="U",
                  location=location, value=value, semantics=semantics, scope=scope,
                  register=register)

    def fence(self, how):
        words, semantics, scope = self._words(how)
        self._add(f"fence.{words};", kind="F", semantics=semantics, scope=scope)

    def barrier(self, number, count):
        self._add(f"bar.sync {number}, {count};", kind="F", semantics="barrier",
                  barrier=number)

    def guard(self, register):
        self.lines.append(f"  setp.eq.u32 p0, {register}, 1;")


def generic(name, place, threads, condition, wanted, hearsay=False):
    """`wanted` has the values of the condition: {(thread, register) or x: value}.
    With `hearsay` data are read behind a flag: that an old value may come is what
    the simulator says with memory-fence."""
    model = Model([t.events for t in threads], PLACES[place], place == "cluster")
    outcomes, race = model.outcomes()

    def matches(outcome):
        registers, memory = dict(outcome[0]), dict(outcome[1])
        return all((registers.get(k, 0) if isinstance(k, tuple) else memory[k]) == v
                   for k, v in wanted.items())
    expect = "undefined" if race else \
        "allowed" if any(map(matches, outcomes)) else "forbidden"
    locations = sorted({e.location for t in threads for e in t.events if e.location})
    body = "cluster\n" if place == "cluster" else ""
    body += "".join(f"global {x}\n" for x in locations)
    for t in threads:
        cta = PLACES[place][t.number]
        body += f"P{t.number} cta {cta}{' all' if uses_barrier(t) else ''}\n"
        body += "".join(f"{lead(t, line)}\n" for line in t.lines)
    rule = {"undefined": "PTX ISA 8.7.1: conflicting accesses that causality does not order, "
                         "and that are not morally strong, are a data race",
            "forbidden": "PTX ISA 8.10: no execution keeps all axioms and has this outcome",
            "allowed": "PTX ISA 8.10: an execution that keeps all axioms has this outcome"}[expect]
    add(name, expect, rule, body, condition, RACES if race else
        "memory-fence" if hearsay and expect == "allowed" else "")


def uses_barrier(thread):
    return any(e.barrier is not None for e in thread.events)


def lead(thread, line):
    """Of a whole warp only one lane accesses memory."""
    if not uses_barrier(thread) or "bar." in line or "setp" in line or line.startswith("  @"):
        return line
    return "  @lead " + line.strip()


def scopes_for(place):
    return {"cta": ("cta", "gpu"), "cluster": ("cta", "cluster", "gpu"),
            "gpu": ("cta", "gpu", "sys")}[place]


def writers(scopes):
    """How a thread can tell of its data: (name, what it does before, the store)."""
    yield "weak", None, "weak"
    yield "vol", None, "volatile"
    for s in scopes:
        yield f"rlx_{s}", None, f"relaxed.{s}"
        yield f"rel_{s}", None, f"release.{s}"
        yield f"fence_{s}", f"acq_rel.{s}", f"relaxed.{s}"
    yield f"fencesc_{scopes[-1]}", f"sc.{scopes[-1]}", f"relaxed.{scopes[-1]}"


def readers(scopes):
    yield "weak", "weak", None
    yield "vol", "volatile", None
    for s in scopes:
        yield f"rlx_{s}", f"relaxed.{s}", None
        yield f"acq_{s}", f"acquire.{s}", None
        yield f"fence_{s}", f"relaxed.{s}", f"acq_rel.{s}"


def message_passing():
    for place in PLACES:
        scopes = scopes_for(place)
        strong = f"relaxed.{scopes[-1]}"
        for (wn, before, store), (rn, load, after) in itertools.product(
                writers(scopes), readers(scopes)):
            # Of the weak and volatile ways one against each suffices.
            if wn in ("weak", "vol") and rn not in (wn, f"acq_{scopes[-1]}"):
                continue
            if rn in ("weak", "vol") and wn not in (rn, f"rel_{scopes[-1]}"):
                continue
            for data in ("weak", strong):
                p0, p1 = Thread(0), Thread(1)
                p0.store(data, "x", 1)
                if before:
                    p0.fence(before)
                p0.store(store, "y", 1)
                p1.load(load, "r0", "y")
                if after:
                    p1.fence(after)
                p1.guard("r0")
                p1.load(data, "r1", "x", "r0")
                generic(f"mp_{place}_{wn}_{rn}_{data.split('.')[0]}", place, [p0, p1],
                        "P1:r0 == 1 /\\ P1:r1 == 0", {(1, "r0"): 1, (1, "r1"): 0}, True)


def fences(scopes):
    yield "none", None
    for s in scopes:
        yield f"acqrel_{s}", f"acq_rel.{s}"
        yield f"sc_{s}", f"sc.{s}"


def two_threads():
    """Store buffering, load buffering, 2+2W, R and S."""
    for place in PLACES:
        scopes = scopes_for(place)
        how = f"relaxed.{scopes[-1]}"
        for (n0, f0), (n1, f1) in itertools.product(fences(scopes), fences(scopes)):
            if n0 != n1 and "none" not in (n0, n1) and n0.split("_")[1] != n1.split("_")[1]:
                continue
            shapes = {
                "sb": ([("W", "x", 1), ("R", "y")], [("W", "y", 1), ("R", "x")],
                       "P0:r0 == 0 /\\ P1:r0 == 0", {(0, "r0"): 0, (1, "r0"): 0}),
                "lb": ([("R", "x"), ("W", "y", 1)], [("R", "y"), ("W", "x", 1)],
                       "P0:r0 == 1 /\\ P1:r0 == 1", {(0, "r0"): 1, (1, "r0"): 1}),
                "w2": ([("W", "x", 1), ("W", "y", 2)], [("W", "y", 1), ("W", "x", 2)],
                       "x == 1 /\\ y == 1", {"x": 1, "y": 1}),
                "r": ([("W", "x", 1), ("W", "y", 1)], [("W", "y", 2), ("R", "x")],
                      "y == 2 /\\ P1:r0 == 0", {"y": 2, (1, "r0"): 0}),
                "s": ([("W", "x", 2), ("W", "y", 1)], [("R", "y"), ("W", "x", 1)],
                      "x == 2 /\\ P1:r0 == 1", {"x": 2, (1, "r0"): 1}),
            }
            for shape, (a, b, condition, wanted) in shapes.items():
                threads = []
                for number, (accesses, fence) in enumerate(((a, f0), (b, f1))):
                    t = Thread(number)
                    for i, access in enumerate(accesses):
                        if i and fence:
                            t.fence(fence)
                        if access[0] == "W":
                            t.store(how, access[1], access[2])
                        else:
                            t.load(how, "r0", access[1])
                    threads.append(t)
                generic(f"{shape}_{place}_{n0}_{n1}", place, threads, condition, wanted)


def many_threads():
    """IRIW, WRC, ISA2 and read-modify-writes between."""
    for place in PLACES:
        scopes = scopes_for(place)
        s = scopes[-1]
        for scope in scopes:
            for fence in ("none", "acq_rel", "sc"):
                p = [Thread(i) for i in range(4)]
                p[0].store(f"relaxed.{s}", "x", 1)
                p[1].store(f"relaxed.{s}", "y", 1)
                for t, (first, second) in ((p[2], "xy"), (p[3], "yx")):
                    t.load(f"relaxed.{s}", "r0", first)
                    if fence != "none":
                        t.fence(f"{fence}.{scope}")
                    t.load(f"relaxed.{s}", "r1", second)
                generic(f"iriw_{place}_{fence}_{scope}", place, p,
                        "P2:r0 == 1 /\\ P2:r1 == 0 /\\ P3:r0 == 1 /\\ P3:r1 == 0",
                        {(2, "r0"): 1, (2, "r1"): 0, (3, "r0"): 1, (3, "r1"): 0})
            for release, acquire in itertools.product(("relaxed", "release"),
                                                      ("relaxed", "acquire")):
                p = [Thread(i) for i in range(3)]
                p[0].store(f"relaxed.{s}", "x", 1)
                p[1].load(f"{acquire}.{scope}", "r0", "x")
                p[1].store(f"{release}.{scope}", "y", 1)
                p[2].load(f"{acquire}.{scope}", "r0", "y")
                p[2].load(f"relaxed.{s}", "r1", "x")
                generic(f"wrc_{place}_{release}_{acquire}_{scope}", place, p,
                        "P1:r0 == 1 /\\ P2:r0 == 1 /\\ P2:r1 == 0",
                        {(1, "r0"): 1, (2, "r0"): 1, (2, "r1"): 0})
                p = [Thread(i) for i in range(3)]
                p[0].store("weak", "x", 1)
                p[0].store(f"{release}.{scope}", "y", 1)
                p[1].exchange(f"relaxed.{s}", "r0", "y", 2)
                p[2].load(f"{acquire}.{scope}", "r0", "y")
                generic(f"rmw_{place}_{release}_{acquire}_{scope}", place, p,
                        "P1:r0 == 1 /\\ P2:r0 == 2", {(1, "r0"): 1, (2, "r0"): 2})


def coherence():
    for place in PLACES:
        for how in ("weak", "volatile", f"relaxed.{scopes_for(place)[-1]}", "relaxed.cta"):
            name = how.replace(".", "_")
            p0, p1 = Thread(0), Thread(1)
            p0.store(how, "x", 1)
            p1.load(how, "r0", "x")
            p1.load(how, "r1", "x")
            generic(f"corr_{place}_{name}", place, [p0, p1],
                    "P1:r0 == 1 /\\ P1:r1 == 0", {(1, "r0"): 1, (1, "r1"): 0})
            p0, p1 = Thread(0), Thread(1)
            p0.store(how, "x", 1)
            p0.store(how, "x", 2)
            p1.load(how, "r0", "x")
            generic(f"coww_{place}_{name}", place, [p0, p1], "x == 1", {"x": 1})
            p0, p1 = Thread(0), Thread(1)
            p0.load(how, "r0", "x")
            p0.store(how, "x", 1)
            p1.store(how, "x", 2)
            generic(f"corw_{place}_{name}", place, [p0, p1], "P0:r0 == 1", {(0, "r0"): 1})
            if how in ("weak", "volatile"):
                continue
            p0, p1 = Thread(0), Thread(1)
            p0.exchange(how, "r0", "x", 1)
            p1.exchange(how, "r0", "x", 2)
            generic(f"exch_{place}_{name}", place, [p0, p1],
                    "P0:r0 == 0 /\\ P1:r0 == 0", {(0, "r0"): 0, (1, "r0"): 0})


def barriers():
    for data in ("weak", "volatile", "relaxed.cta"):
        for first, second in ((0, 0), (1, 1), (2, 2)):
            p0, p1 = Thread(0), Thread(1)
            p0.store(data, "x", 1)
            p0.barrier(first, 64)
            p1.barrier(second, 64)
            p1.load(data, "r0", "x")
            generic(f"bar_{data.split('.')[0]}_{first}", "cta", [p0, p1], "P1:r0 == 0",
                    {(1, "r0"): 0})
        p0, p1 = Thread(0), Thread(1)
        p0.barrier(0, 64)
        p0.store(data, "x", 1)
        p1.load(data, "r0", "x")
        p1.barrier(0, 64)
        generic(f"bar_war_{data.split('.')[0]}", "cta", [p0, p1], "P1:r0 == 1", {(1, "r0"): 1})
        p0, p1 = Thread(0), Thread(1)
        p0.barrier(0, 64)
        p0.store(data, "x", 1)
        p1.barrier(0, 64)
        p1.load(data, "r0", "x")
        generic(f"bar_behind_{data.split('.')[0]}", "cta", [p0, p1], "P1:r0 == 1",
                {(1, "r0"): 1})


if __name__ == "__main__":
    import asynchronous
    for family in (message_passing, two_threads, many_threads, coherence, barriers):
        family()
    for name, expect in KNOWN.items():
        assert f"expect {expect}\n" in tests[name], name
    asynchronous.write(add)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    for name, text in tests.items():
        with open(os.path.join(folder, name + ".litmus"), "w") as file:
            file.write(text)
    print(f"{len(tests)} litmus tests")
