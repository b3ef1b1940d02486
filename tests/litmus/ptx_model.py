"""What the memory model of the PTX ISA (chapter 8) says of a small test.

All executions of a few threads of loads, stores, fences and barriers of the
generic proxy are listed, and those that break an axiom are left out: coherence,
Fence-SC, atomicity, SC-per-location and causality. What is left says whether a
condition is allowed, and whether the test has a data race, which leaves its
outcome undefined."""

import itertools

SCOPES = ("cta", "cluster", "gpu", "sys")


class Event:
    """One operation of a thread on a location; kind R, W, U (both) or F."""

    def __init__(self, thread, index, kind, location=None, value=None,
                 semantics="weak", scope="sys", register=None, barrier=None,
                 guard=None):
        self.thread, self.index, self.kind = thread, index, kind
        self.location, self.value, self.register = location, value, register
        self.semantics, self.scope, self.barrier = semantics, scope, barrier
        self.guard = guard  # the register that has to be 1 for it to happen

    @property
    def reads(self):
        return self.kind in "RU"

    @property
    def writes(self):
        return self.kind in "WU"

    @property
    def strong(self):
        return self.semantics != "weak"


class Model:
    def __init__(self, threads, placement, clustered=False):
        """threads: lists of Events; placement: the CTA of each."""
        self.all, self.placement, self.clustered = threads, placement, clustered
        self.live([event for thread in threads for event in thread])
        self.locations = sorted({e.location for e in self.events if e.location})
        self.initial = {x: Event(-1, 0, "W", x, 0, "relaxed", "sys")
                        for x in self.locations}

    def live(self, events):
        self.events = events
        self.threads = [[e for e in thread if e in events] for thread in self.all]

    def includes(self, event, other):
        """The scope of one has the thread of the other in it."""
        if event.thread < 0 or other.thread < 0 or event.scope in ("gpu", "sys"):
            return True
        if event.scope == "cluster" and self.clustered:
            return True
        return self.placement[event.thread] == self.placement[other.thread]

    def morally_strong(self, a, b):
        if a.thread == b.thread and a.thread >= 0:
            return True
        return a.strong and b.strong and self.includes(a, b) and self.includes(b, a)

    def before(self, a, b):
        return a.thread == b.thread and a.index < b.index

    def releases(self, a):
        """Pairs of what is released and the write that tells of it."""
        found = []
        for w in (e for e in self.threads[a] if e.writes and e.strong):
            if w.semantics in ("release", "acq_rel"):
                found.append((w, w))
            for f in self.threads[a]:
                if f.kind == "F" and f.semantics in ("acq_rel", "sc") and self.before(f, w):
                    found.append((f, w))
        return found

    def acquires(self, a):
        found = []
        for r in (e for e in self.threads[a] if e.reads and e.strong):
            if r.semantics in ("acquire", "acq_rel"):
                found.append((r, r))
            for f in self.threads[a]:
                if f.kind == "F" and f.semantics in ("acq_rel", "sc") and self.before(r, f):
                    found.append((r, f))
        return found

    def executions(self):
        everything = [e for thread in self.all for e in thread]
        reads = [e for e in everything if e.reads]
        choices = [[self.initial[r.location]] +
                   [w for w in everything if w.writes and w.location == r.location and w is not r]
                   for r in reads]
        for sources in itertools.product(*choices):
            rf = dict(zip(reads, sources))
            value = {(r.thread, r.register): w.value for r, w in rf.items()}
            off = {e for e in everything if e.guard and value[(e.thread, e.guard)] != 1}
            # What does not happen reads nothing, and nobody reads it.
            if any((r in off and w.thread >= 0) or w in off for r, w in rf.items()):
                continue
            self.live([e for e in everything if e not in off])
            rf = {r: w for r, w in rf.items() if r not in off}
            orders = []
            for x in self.locations:
                writes = [e for e in self.events if e.writes and e.location == x]
                orders.append([[self.initial[x], *order]
                               for order in itertools.permutations(writes)])
            fences = [e for e in self.events if e.kind == "F" and e.semantics == "sc"]
            for chosen in itertools.product(*orders):
                co = {w: i for order in chosen for i, w in enumerate(order)}
                for sc in itertools.permutations(fences):
                    yield rf, co, list(sc)

    def synchronizes(self, rf, sc):
        pairs = set()
        for a in range(len(self.threads)):
            for release, w in self.releases(a):
                for b in range(len(self.threads)):
                    if b == a:
                        continue
                    for r, acquire in self.acquires(b):
                        # Observation goes through read-modify-writes.
                        source = rf[r]
                        seen = set()
                        while source is not w and source.kind == "U" and source not in seen:
                            seen.add(source)
                            source = rf[source]
                        if source is not w or not self.morally_strong(w, r):
                            continue
                        if self.includes(release, acquire) and self.includes(acquire, release):
                            pairs.add((release, acquire))
        for i, first in enumerate(sc):
            for second in sc[i + 1:]:
                if self.includes(first, second) and self.includes(second, first):
                    pairs.add((first, second))
        for a in self.events:
            for b in self.events:
                if a.kind == "F" and a.barrier is not None and b.barrier == a.barrier \
                        and a.thread != b.thread \
                        and self.placement[a.thread] == self.placement[b.thread]:
                    pairs.add((a, b))
        return pairs

    def causality(self, rf, sc):
        after = {e: set() for e in self.events}
        for thread in self.threads:
            for i, a in enumerate(thread):
                after[a].update(thread[i + 1:])
        for a, b in self.synchronizes(rf, sc):
            # A barrier orders what is before one arrival with what is behind
            # the other.
            after[a].update(e for e in self.events if self.before(b, e)
                            ) if a.barrier is not None else after[a].add(b)
        changed = True
        while changed:
            changed = False
            for e in self.events:
                more = set().union(*(after[x] for x in after[e])) if after[e] else set()
                if not more <= after[e]:
                    after[e] |= more
                    changed = True
        return after

    def consistent(self, rf, co, sc):
        """The causality order; nothing where an axiom is broken."""
        after = self.causality(rf, sc)
        if any(e in after[e] for e in self.events):
            return None
        for i, first in enumerate(sc):
            if any(first in after[second] for second in sc[i + 1:]
                   if self.includes(first, second) and self.includes(second, first)):
                return None
        for r, w in rf.items():
            if r.kind == "U" and co[r] != co[w] + 1 and self.morally_strong(r, w):
                return None
            if w.thread >= 0 and w in after[r]:
                return None
            for other in self.events:
                if other.writes and other.location == r.location and other is not w:
                    if co[other] > co[w] and r in after[other]:
                        return None
        for a in self.events:
            # What a read has observed is before everything that follows it.
            seen = a if a.writes else None
            if a.reads and self.morally_strong(rf[a], a):
                seen = a if a.kind == "U" else rf[a]
            for b in after[a]:
                if not a.location or a.location != b.location:
                    continue
                if a.reads and b.writes and rf[a] is b:
                    return None
                if seen and b.writes and co[b] < co[seen]:
                    return None
                if seen and b.reads and co[rf[b]] < co[seen]:
                    return None
        return after if self.per_location(rf, co) and self.no_thin_air(rf) else None

    def per_location(self, rf, co):
        """Morally strong communication and program order of a location agree."""
        for x in self.locations:
            events = [e for e in self.events if e.location == x]
            edge = {e: set() for e in events}
            for a in events:
                for b in events:
                    if a is b:
                        continue
                    if self.before(a, b):
                        edge[a].add(b)
                        continue
                    if not self.morally_strong(a, b):
                        continue
                    if a.writes and b.writes and co[a] < co[b]:
                        edge[a].add(b)
                    if a.writes and b.reads and rf[b] is a:
                        edge[a].add(b)
                    if a.reads and b.writes and co[rf[a]] < co[b] and rf[a] is not b:
                        edge[a].add(b)
            state = {}

            def cyclic(e):
                state[e] = 1
                for f in edge[e]:
                    if state.get(f) == 1 or (f not in state and cyclic(f)):
                        return True
                state[e] = 2
                return False
            if any(e not in state and cyclic(e) for e in events):
                return False
        return True

    def no_thin_air(self, rf):
        # The tests store constants: no value depends on one that was read.
        return True

    def outcomes(self):
        """All register and memory values, and whether there is a data race."""
        found, race = set(), False
        for rf, co, sc in self.executions():
            after = self.consistent(rf, co, sc)
            if after is None:
                continue
            values = {(r.thread, r.register): w.value for r, w in rf.items() if r.register}
            last = {x: max((e for e in co if e.location == x), key=lambda e: co[e]).value
                    for x in self.locations}
            found.add((tuple(sorted(values.items())), tuple(sorted(last.items()))))
            for a, b in itertools.combinations(self.events, 2):
                if a.location and a.location == b.location and a.thread != b.thread \
                        and (a.writes or b.writes) and not self.morally_strong(a, b) \
                        and b not in after[a] and a not in after[b]:
                    race = True
        return found, race
