"""Litmus tests of the asynchronous machine: copies, mbarriers, proxies, clusters
and tensor memory. Each pattern is right with all its edges; a test takes one
away, weakens it, or replaces it by one that does not order."""

import itertools

TMA = "PTX ISA 9.7.9.25.4 (cp.async.bulk): "
PROXY = "PTX ISA 9.7.13.4 (fence.proxy): "
MBARRIER = "PTX ISA 9.7.13.15 (mbarrier): "
CP_ASYNC = "PTX ISA 9.7.9.25.3 (cp.async): "
CLUSTER = "PTX ISA 9.7.13.3 (barrier.cluster): "
TCGEN05 = "PTX ISA 9.7.16.6 (tcgen05, memory consistency): "


def wait(barrier, parity=0, how="try_wait", label="wait", semantics=""):
    return (f" {label}:\n  mbarrier.{how}.parity{semantics}.shared::cta.b64 p7, "
            f"[{barrier}], {parity};\n  @!p7 bra {label};\n")


def bulk_load(source="x", to="s", barrier="m", size=16):
    return (f"  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
            f"[{to}], [{source}], {size}, [{barrier}];\n")


def bulk_store(to="x", source="s", size=16):
    return f"  cp.async.bulk.global.shared::cta.bulk_group [{to}], [{source}], {size};\n"


def expect_bytes(barrier="m", size=16, semantics=""):
    return f"  mbarrier.arrive.expect_tx{semantics}.shared::cta.b64 _, [{barrier}], {size};\n"


COMMIT = "  cp.async.bulk.commit_group;\n"
FENCES = {"none": ("", False, False), "all": ("  fence.proxy.async;\n", True, True),
          "shared": ("  fence.proxy.async.shared::cta;\n", True, False),
          "cluster": ("  fence.proxy.async.shared::cluster;\n", True, False),
          "global": ("  fence.proxy.async.global;\n", False, True)}


def verdict(is_right):
    return "forbidden" if is_right else "undefined"


def bulk_stores(add):
    """Threads write a tile, and a copy stores it."""
    for (kind, (fence, shared, _)), place in itertools.product(
            FENCES.items(), ("same", "writer", "issuer", "both")):
        body = "global x 16\nshared s 16\n"
        copy = bulk_store() + COMMIT + "  cp.async.bulk.wait_group 0;\n"
        if place == "same":
            body += f"P0\n  st.shared.u32 [s], 7;\n{fence}{copy}"
        else:
            before = fence if place in ("writer", "both") else ""
            behind = fence if place in ("issuer", "both") else ""
            lead = "".join(f"  @lead {line.strip()}\n" for line in
                           ("  st.shared.u32 [s], 7;\n" + before).splitlines())
            body += f"P0 all\n{lead}  bar.sync 1, 64;\n"
            body += "P1 all\n  bar.sync 1, 64;\n" + "".join(
                f"  @lead {line.strip()}\n" for line in (behind + copy).splitlines())
        add(f"bulk_store_{place}_{kind}", verdict(shared),
            PROXY + "a generic write is ordered before an access of the async proxy by a proxy "
            "fence for its state space", body, "x != 7", "" if shared else "proxy-fence")
    for waited in ("read", "all", "none", "uncommitted"):
        copy = bulk_store() + (COMMIT if waited != "uncommitted" else "")
        copy += {"read": "  cp.async.bulk.wait_group.read 0;\n",
                 "all": "  cp.async.bulk.wait_group 0;\n"}.get(waited, "")
        if waited == "uncommitted":
            copy += "  cp.async.bulk.wait_group.read 0;\n"
        right = waited in ("read", "all")
        add(f"bulk_store_reuse_{waited}", verdict(right),
            TMA + "the source may be written again when the group's reads were waited for",
            "global x 16\nshared s 16\nP0\n  st.shared.u32 [s], 7;\n  fence.proxy.async;\n" +
            copy + "  st.shared.u32 [s], 9;\n  cp.async.bulk.commit_group;\n"
            "  cp.async.bulk.wait_group 0;\n", "x == 9",
            "" if right else "copy-source-reuse")
    for groups, kept in itertools.product((1, 2, 3), (0, 1, 2)):
        copy = "".join(f"  st.shared.u32 [s{i}], {i + 1};\n" for i in range(groups))
        copy += "  fence.proxy.async;\n"
        copy += "".join(bulk_store("x", f"s{i}") + COMMIT if i == 0 else
                        bulk_store("y", f"s{i}") + COMMIT for i in range(min(groups, 2)))
        if groups == 3:
            copy += bulk_store("z", "s2") + COMMIT
        right = groups > kept
        body = "global x 16\nglobal y 16\nglobal z 16\n" + "".join(
            f"shared s{i} 16\n" for i in range(groups))
        body += f"P0\n{copy}  cp.async.bulk.wait_group.read {kept};\n  st.shared.u32 [s0], 9;\n" \
                "  cp.async.bulk.wait_group 0;\n"
        add(f"bulk_group_{groups}_of_{kept}", verdict(right),
            TMA + "wait_group N waits until at most N of the newest groups are pending",
            body, "x == 9", "" if right else "copy-source-reuse")
    for waited in ("all", "read"):
        add(f"bulk_store_then_load_{waited}", verdict(waited == "all"),
            TMA + "writes of a group are visible to the thread when it has waited for it, but "
            "not with .read",
            "global x 16\nshared s 16\nP0\n  st.shared.u32 [s], 7;\n  fence.proxy.async;\n" +
            bulk_store() + COMMIT +
            f"  cp.async.bulk.wait_group{'.read' if waited == 'read' else ''} 0;\n"
            "  ld.global.u32 r0, [x];\n  cp.async.bulk.wait_group 0;\n", "P0:r0 != 7",
            "" if waited == "all" else "copy-not-awaited")


def bulk_loads(add):
    """A copy loads a tile, and threads read it."""
    head = "global x 16 = 5\nshared s 16\nmbarrier m\n"
    for how, semantics in itertools.product(("try_wait", "test_wait"),
                                            ("", ".acquire.cta", ".acquire.cluster",
                                             ".relaxed.cta")):
        right = "relaxed" not in semantics
        add(f"bulk_load_{how}{semantics.replace('.', '_')}", verdict(right),
            MBARRIER + "the completion of a copy is observed by a wait with .acquire semantics",
            head + "P0\n" + expect_bytes() + bulk_load() + wait("m", how=how, semantics=semantics) +
            "  ld.shared.u32 r0, [s];\n", "P0:r0 != 5", "" if right else "copy-not-awaited race")
    for edge in ("wait", "none", "arrive", "barrier", "barrier_before", "other_phase"):
        first = "  @lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [m], 16;\n  @lead " + \
            bulk_load().strip() + "\n"
        second = "  @lead ld.shared.u32 r0, [s];\n"
        right = edge in ("wait", "barrier")
        if edge == "wait":
            second = "  bar.sync 1, 64;\n" + wait("m") + second
            first += "  bar.sync 1, 64;\n"
        elif edge == "barrier":
            first += wait("m") + "  bar.sync 1, 64;\n"
            second = "  bar.sync 1, 64;\n" + second
        elif edge == "barrier_before":
            first += "  bar.sync 1, 64;\n" + wait("m")
            second = "  bar.sync 1, 64;\n" + second
        elif edge == "arrive":
            first += wait("m") + "  bar.arrive 1, 64;\n"
            second = "  bar.sync 1, 64;\n" + second
            right = True
        elif edge == "other_phase":
            first += "  bar.sync 1, 64;\n" + wait("m")
            second = "  bar.sync 1, 64;\n" + wait("m", 1) + second
        else:
            first += wait("m")
        add(f"bulk_load_other_{edge}", verdict(right),
            MBARRIER + "a thread sees the bytes of a copy when it has waited for the phase, or "
            "is ordered behind one that has",
            head + f"P0 all\n{first}P1 all\n{second}", "P1:r0 != 5",
            "" if right else "deadlock copy-not-awaited race" if edge == "other_phase" else
            "copy-not-awaited race")
    for kind, (fence, _, is_global) in FENCES.items():
        add(f"bulk_load_written_{kind}", verdict(is_global),
            PROXY + "a generic write to global memory is seen by a copy behind a proxy fence for "
            ".global",
            "global x 16\nshared s 16\nmbarrier m\nP0\n  st.global.u32 [x], 7;\n" + fence +
            expect_bytes() + bulk_load() + wait("m") + "  ld.shared.u32 r0, [s];\n",
            "P0:r0 != 7", "" if is_global else "proxy-fence")
    for kind, (fence, shared, _) in FENCES.items():
        add(f"bulk_load_over_write_{kind}", verdict(shared),
            PROXY + "a copy that writes where threads have written needs a proxy fence between",
            head + "P0\n  st.shared.u32 [s], 7;\n" + fence + expect_bytes() + bulk_load() +
            wait("m") + "  ld.shared.u32 r0, [s];\n", "P0:r0 != 5",
            "" if shared else "proxy-fence")
        add(f"bulk_load_over_read_{kind}", "forbidden",
            PROXY + "a read that is over does not see a later copy; the text asks for the fence",
            "global x 16 = 5\nglobal y 16 = 6\nshared s 16\nmbarrier m\nP0\n" + expect_bytes() +
            bulk_load() + wait("m") + "  ld.shared.u32 r0, [s];\n" + fence + expect_bytes() +
            bulk_load("y") + wait("m", 1, label="again") + "  ld.shared.u32 r1, [s];\n",
            "P0:r0 != 5 \\/ P0:r1 != 6", "" if shared else "proxy-fence-after-read")
    for order in ("expect_first", "copy_first"):
        two = (expect_bytes(), bulk_load())
        add(f"bulk_load_{order}", "forbidden",
            MBARRIER + "the pending count of a phase keeps it open: bytes may come before they are "
            "expected",
            head + "P0\n" + "".join(two if order == "expect_first" else two[::-1]) + wait("m") +
            "  ld.shared.u32 r0, [s];\n", "P0:r0 != 5")
    for size, named in ((16, 16), (32, 32), (64, 64), (16, 32), (32, 16)):
        right = size == named
        add(f"bulk_load_bytes_{size}_of_{named}", verdict(right),
            MBARRIER + "a phase is complete when its bytes are those that it expects",
            f"global x {max(size, 64)} = 5\nshared s {max(size, 64)}\nmbarrier m\nP0\n" +
            expect_bytes(size=named) + bulk_load(size=size) + wait("m") +
            "  ld.shared.u32 r0, [s];\n", "P0:r0 != 5",
            "" if right else "deadlock mbarrier-bytes copy-not-awaited")


def plain_copies(add):
    """cp.async."""
    head = "global x 16 = 5\nglobal y 16 = 6\nshared s 16\nshared t 16\nmbarrier m\n"
    copy = "  cp.async.{0}.shared.global [{2}], [{1}], 16;\n"
    waits = {"none": ("", False), "wait_all": ("  cp.async.wait_all;\n", True),
             "group": ("  cp.async.commit_group;\n  cp.async.wait_group 0;\n", True),
             "group_1": ("  cp.async.commit_group;\n  cp.async.wait_group 1;\n", False),
             "uncommitted": ("  cp.async.wait_group 0;\n", False),
             "mbarrier": ("  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m];\n" + wait("m"),
                          True),
             "mbarrier_unawaited": ("  cp.async.mbarrier.arrive.noinc.shared::cta.b64 [m];\n",
                                    False)}
    for cache, (name, (text, right)) in itertools.product(("cg", "ca"), waits.items()):
        size = copy.format(cache, "x", "s")
        add(f"cp_async_{cache}_{name}", verdict(right),
            CP_ASYNC + "the bytes are there when the copy was waited for",
            head + "P0\n" + size + text + "  ld.shared.u32 r0, [s];\n  cp.async.wait_all;\n",
            "P0:r0 != 5", "" if right else "copy-not-awaited")
    for kept, which in itertools.product((0, 1, 2), "st"):
        right = kept == 0 or (kept == 1 and which == "s")
        add(f"cp_async_groups_{kept}_{which}", verdict(right),
            CP_ASYNC + "wait_group N waits for all but the newest N groups",
            head + "P0\n" + copy.format("cg", "x", "s") + "  cp.async.commit_group;\n" +
            copy.format("cg", "y", "t") + f"  cp.async.commit_group;\n  cp.async.wait_group {kept};\n"
            f"  ld.shared.u32 r0, [{which}];\n  cp.async.wait_all;\n",
            f"P0:r0 != {5 if which == 's' else 6}", "" if right else "copy-not-awaited")
    for edge in ("wait_barrier", "barrier_wait", "barrier"):
        first = "  @lead " + copy.format("cg", "x", "s").strip() + "\n"
        text = {"wait_barrier": "  cp.async.wait_all;\n  bar.sync 1, 64;\n",
                "barrier_wait": "  bar.sync 1, 64;\n  cp.async.wait_all;\n",
                "barrier": "  bar.sync 1, 64;\n"}[edge]
        right = edge == "wait_barrier"
        add(f"cp_async_other_{edge}", verdict(right),
            CP_ASYNC + "another thread sees the bytes behind a barrier that the copying thread "
            "comes to after its wait",
            head + f"P0 all\n{first}{text}  cp.async.wait_all;\nP1 all\n  bar.sync 1, 64;\n"
            "  @lead ld.shared.u32 r0, [s];\n", "P1:r0 != 5",
            "" if right else "copy-not-awaited race")
    for noinc, count in itertools.product(("", ".noinc"), (1, 2)):
        # Without noinc the pending count grows by one, and the arrival takes it back.
        text = f"  cp.async.mbarrier.arrive{noinc}.shared::cta.b64 [m];\n"
        text += "  mbarrier.arrive.shared::cta.b64 _, [m];\n" if not noinc or count == 2 else ""
        if not noinc and count == 2:
            text += "  mbarrier.arrive.shared::cta.b64 _, [m];\n"
        add(f"cp_async_arrive{noinc.replace('.', '_')}_{count}", "forbidden",
            CP_ASYNC + "mbarrier.arrive without .noinc raises the pending count by one",
            head.replace("mbarrier m", f"mbarrier m {count}") + "P0\n" +
            copy.format("cg", "x", "s") + text + wait("m") + "  ld.shared.u32 r0, [s];\n",
            "P0:r0 != 5")


def mbarriers(add):
    """Message passing through a phase."""
    for space, arrive, waiting in itertools.product(
            ("shared", "global"),
            ("", ".release.cta", ".release.cluster", ".relaxed.cta"),
            ("", ".acquire.cta", ".acquire.cluster", ".relaxed.cta")):
        right = "relaxed" not in arrive + waiting
        body = ("shared" if space == "shared" else "global") + " x\nmbarrier m\n"
        body += f"P0\n  st.{space}.u32 [x], 1;\n  mbarrier.arrive{arrive}.shared::cta.b64 _, [m];\n"
        body += "P1\n" + wait("m", semantics=waiting) + f"  ld.{space}.u32 r0, [x];\n"
        name = f"{arrive or '.default'}{waiting or '.default'}".replace(".", "_")
        add(f"mbarrier_{space}{name}", verdict(right),
            MBARRIER + "an arrival with .release and a wait with .acquire that observes its phase "
            "synchronize", body, "P1:r0 != 1", "" if right else "race")
    for side in ("arrive", "wait", "both"):
        # Relaxed operations beside fences order as the others do.
        fence = "  fence.acq_rel.cta;\n"
        body = "shared x\nmbarrier m\nP0\n  st.shared.u32 [x], 1;\n"
        body += (fence if side != "wait" else "") + "  mbarrier.arrive" + \
            (".relaxed.cta" if side != "wait" else "") + ".shared::cta.b64 _, [m];\nP1\n"
        body += wait("m", semantics=".relaxed.cta" if side != "arrive" else "")
        body += (fence if side != "arrive" else "") + "  ld.shared.u32 r0, [x];\n"
        add(f"mbarrier_fenced_{side}", "forbidden",
            "PTX ISA 8.8: a fence beside a relaxed operation makes a release or acquire pattern",
            body, "P1:r0 != 1")
    for arrivals, count in itertools.product((1, 2), (1, 2)):
        right = arrivals >= count or count == 2
        body = f"shared x\nmbarrier m {count}\nP0\n  mbarrier.arrive.shared::cta.b64 _, [m];\n"
        body += "  st.shared.u32 [x], 1;\n"
        if arrivals == 2:
            body += "  mbarrier.arrive.shared::cta.b64 _, [m];\n"
        body += "P1\n" + wait("m") + "  ld.shared.u32 r0, [x];\n"
        if count == 2 and arrivals == 1:
            add(f"mbarrier_count_{arrivals}_of_{count}", "undefined",
                MBARRIER + "a phase is complete when its pending count is zero", body,
                "P1:r0 != 1", "deadlock")
            continue
        right = arrivals == count == 2
        add(f"mbarrier_count_{arrivals}_of_{count}", verdict(right),
            MBARRIER + "what follows an arrival is not ordered by its phase", body, "P1:r0 != 1",
            "" if right else
            ("deadlock " if arrivals > count else "") + "race mbarrier-unobserved")
    for phases in (1, 2, 3):
        body = "shared x\nmbarrier m\nmbarrier n\nP0\n"
        for i in range(phases):
            body += f"  st.shared.u32 [x], {i + 1};\n  mbarrier.arrive.shared::cta.b64 _, [m];\n"
            body += wait("n", i % 2, label=f"w{i}")
        body += "P1\n"
        for i in range(phases):
            body += wait("m", i % 2, label=f"w{i}") + f"  ld.shared.u32 r{i}, [x];\n"
            body += "  mbarrier.arrive.shared::cta.b64 _, [n];\n"
        add(f"mbarrier_ping_pong_{phases}", "forbidden",
            MBARRIER + "each phase orders what is before its arrivals with what is behind its "
            "waits", body, " \\/ ".join(f"P1:r{i} != {i + 1}" for i in range(phases)))


def clusters(add):
    """Shared memory of another CTA."""
    head = "cluster\nshared x\nmbarrier m\n"
    remote = "  mapa.shared::cluster.u32 r6, {0}, {1};\n"
    for arrive, waiting in itertools.product(("", ".release", ".relaxed"), ("", ".acquire")):
        right = arrive != ".relaxed"
        body = head + "P0 cta 0 all\n" + remote.format("x", 1) + \
            "  @lead st.shared::cluster.u32 [r6], 1;\n  bar.warp.sync 0xffffffff;\n" \
            f"  barrier.cluster.arrive{arrive}.aligned;\n  barrier.cluster.wait{waiting}.aligned;\n"
        body += f"P1 cta 1 warp 0 all\n  barrier.cluster.arrive{arrive}.aligned;\n" \
            f"  barrier.cluster.wait{waiting}.aligned;\n  @lead ld.shared.u32 r0, [x];\n"
        add(f"cluster_barrier{(arrive + waiting).replace('.', '_') or '_default'}",
            verdict(right),
            CLUSTER + "an arrival with .relaxed orders no memory accesses", body, "P1:r0 != 1",
            "" if right else "race")
        body = head.replace("shared x", "global x") + \
            "P0 cta 0 all\n  @lead st.global.u32 [x], 1;\n  bar.warp.sync 0xffffffff;\n" \
            f"  barrier.cluster.arrive{arrive}.aligned;\n  barrier.cluster.wait{waiting}.aligned;\n"
        body += f"P1 cta 1 warp 0 all\n  barrier.cluster.arrive{arrive}.aligned;\n" \
            f"  barrier.cluster.wait{waiting}.aligned;\n  @lead ld.global.u32 r0, [x];\n"
        add(f"cluster_barrier_global{(arrive + waiting).replace('.', '_') or '_default'}",
            verdict(right), CLUSTER + "an arrival with .relaxed orders no memory accesses", body,
            "P1:r0 != 1", "" if right else "race")
    for arrive, waiting in itertools.product(
            ("", ".release.cta", ".release.cluster", ".relaxed.cluster"),
            ("", ".acquire.cta", ".acquire.cluster", ".relaxed.cluster")):
        right = arrive == ".release.cluster" and waiting == ".acquire.cluster"
        for space in ("shared", "global"):
            at = "[r6]" if space == "shared" else "[x]"
            body = (head if space == "shared" else head.replace("shared x", "global x")) + \
                "P0 cta 0\n" + (remote.format("x", 1) if space == "shared" else "") + \
                f"  st.{'shared::cluster' if space == 'shared' else 'global'}.u32 {at}, 1;\n" + \
                remote.format("m", 1) + \
                f"  mbarrier.arrive{arrive}.shared::cluster.b64 _, [r6];\n"
            body += "P1 cta 1 warp 0\n" + wait("m", semantics=waiting) + \
                f"  ld.{space}.u32 r0, [x];\n"
            name = f"{arrive or '.default'}{waiting or '.default'}".replace(".", "_")
            add(f"remote_arrive_{space}{name}", verdict(right),
                MBARRIER + "threads of two CTAs synchronize where both scopes are .cluster", body,
                "P1:r0 != 1", "" if right else "race mbarrier-remote-scope")
    stores = {"st_async": "  st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [r6], 9, "
                          "[r5];\n",
              "red_async": "  red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
                           "bytes.add.u32 [r6], 9, [r5];\n"}
    for (name, store), waiting in itertools.product(
            stores.items(), ("", ".acquire.cluster", ".relaxed.cluster", "none")):
        right = waiting in ("", ".acquire.cluster")
        body = head + "P0 cta 0\n  mov.b32 r4, 9;\n" + remote.format("x", 1) + \
            "  mapa.shared::cluster.u32 r5, m, 1;\n" + store.replace(" 9,", " r4,")
        body += "P1 cta 1 warp 0\n" + expect_bytes(size=4)
        read = "  ld.shared.u32 r0, [x];\n"
        body += read + wait("m") if waiting == "none" else wait("m", semantics=waiting) + read
        label = waiting.replace(".", "_") if waiting.startswith(".") else "_" + (waiting or "default")
        add(f"{name}{label}", verdict(right),
            "PTX ISA 9.7.9.12 (st.async): the store is observed by a wait for its mbarrier",
            body, "P1:r0 != 9", "" if right else "copy-not-awaited race")
    for edge in ("right", "one_waits", "no_wait"):
        body = "cluster\nglobal x 16 = 5\nshared s 16\nmbarrier m\nP0 cta 0 all\n"
        body += "  @lead " + expect_bytes().strip() + "\n  bar.warp.sync 0xffffffff;\n"
        body += "  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n"
        body += "  mov.b32 r5, 3;\n  cvt.u16.u32 h0, r5;\n" if False else ""
        body += "  @lead cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" \
            ".multicast::cluster [s], [x], 16, [m], 3;\n"
        body += wait("m") if edge != "no_wait" else ""
        body += "  @lead ld.shared.u32 r0, [s];\n"
        body += wait("m", label="end") if edge == "no_wait" else ""
        body += "P1 cta 1 warp 0 all\n  @lead " + expect_bytes().strip() + "\n"
        body += "  bar.warp.sync 0xffffffff;\n  barrier.cluster.arrive.aligned;\n"
        body += "  barrier.cluster.wait.aligned;\n"
        body += (wait("m") if edge == "right" else "") + "  @lead ld.shared.u32 r0, [s];\n"
        body += wait("m", label="end") if edge != "right" else ""
        right = edge == "right"
        add(f"multicast_{edge}", verdict(right),
            TMA + "with .multicast::cluster each CTA's mbarrier, at the same offset, tells of its "
            "bytes", body, "P0:r0 != 5 \\/ P1:r0 != 5", "" if right else "copy-not-awaited race")
    for kind, (fence, shared, _) in FENCES.items():
        right = kind in ("all", "cluster")
        if kind == "shared":
            continue  # .shared::cta is not the other CTA's memory; see the next one
        body = "cluster\nglobal x 16\nshared s 16\nP0 cta 0 all\n" + remote.format("s", 1) + \
            "  @lead st.shared::cluster.u32 [r6], 7;\n" + \
            ("  @lead " + fence.strip() + "\n" if fence else "") + \
            "  bar.warp.sync 0xffffffff;\n  barrier.cluster.arrive.aligned;\n" \
            "  barrier.cluster.wait.aligned;\n"
        body += "P1 cta 1 warp 0 all\n  barrier.cluster.arrive.aligned;\n" \
            "  barrier.cluster.wait.aligned;\n  @lead " + bulk_store().strip() + "\n  @lead " + \
            COMMIT.strip() + "\n  @lead cp.async.bulk.wait_group 0;\n"
        add(f"bulk_store_remote_{kind}", verdict(right),
            PROXY + "a generic write to another CTA's memory needs a proxy fence for it", body,
            "x != 7", "" if right else "proxy-fence")
    for size in (16, 64):
        for waits in (True, False):
            body = f"cluster\nshared s {size}\nshared t {size}\nmbarrier m\nP0 cta 0\n" \
                "  st.shared.u32 [s], 7;\n  fence.proxy.async;\n" + remote.format("t", 1) + \
                "  mapa.shared::cluster.u32 r5, m, 1;\n" \
                "  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes " \
                f"[r6], [s], {size}, [r5];\n"
            read = "  ld.shared.u32 r0, [t];\n"
            body += "P1 cta 1 warp 0\n" + expect_bytes(size=size) + \
                (wait("m") + read if waits else read + wait("m"))
            add(f"bulk_remote_{size}_{'waited' if waits else 'unwaited'}", verdict(waits),
                TMA + "a copy to another CTA's memory completes on its mbarrier", body,
                "P1:r0 != 7", "" if waits else "copy-not-awaited race")


def named_barriers(add):
    """bar.arrive, bar.red and different numbers of threads."""
    for space in ("shared", "global"):
        for first, second in (("arrive", "sync"), ("sync", "arrive"), ("sync", "sync"),
                              ("red", "red")):
            texts = {"arrive": "  bar.arrive 1, 64;\n", "sync": "  bar.sync 1, 64;\n",
                     "red": "  bar.red.popc.u32 r1, 1, 64, p0;\n"}
            body = f"{space} x\nP0 all\n  setp.ne.u32 p0, r7, 0;\n  @lead st.{space}.u32 [x], 1;\n" + \
                texts[first]
            body += "P1 all\n  setp.ne.u32 p0, r7, 0;\n" + texts[second] + \
                f"  @lead ld.{space}.u32 r0, [x];\n"
            right = second != "arrive"
            add(f"named_{space}_{first}_{second}", verdict(right),
                "PTX ISA 9.7.13.1 (bar): bar.arrive does not wait, and orders nothing behind it",
                body, "P1:r0 != 1", "" if right else "race")


def tensor_memory(add):
    """tcgen05: what a thread has put into tensor memory, and others read."""
    alloc = "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;\n" \
            "  ld.shared.u32 r5, [s];\n"
    free = "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 r5, 32;\n"
    store = "  mov.b32 r4, 7;\n  tcgen05.st.sync.aligned.32x32b.x1.b32 [r5], {r4};\n"
    load = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {r0}, [r5];\n" \
           "  tcgen05.wait::ld.sync.aligned;\n"
    before = "  tcgen05.fence::before_thread_sync;\n"
    after = "  tcgen05.fence::after_thread_sync;\n"
    for waits in (True, False):
        add(f"tcgen05_same_{'waited' if waits else 'unwaited'}", verdict(waits),
            TCGEN05 + "a store is complete behind tcgen05.wait::st",
            "shared s\nP0 all\n" + alloc + store +
            ("  tcgen05.wait::st.sync.aligned;\n" if waits else "") + load +
            ("" if waits else "  tcgen05.wait::st.sync.aligned;\n") + free, "P0:r0 != 7",
            "" if waits else "tcgen05-not-awaited uninitialized-store", "sm_100a")
    for waits, fenced, synced in itertools.product((True, False), repeat=3):
        first = alloc + "  bar.sync 1, 64;\n" + store
        first += "  tcgen05.wait::st.sync.aligned;\n" if waits else ""
        first += (before if fenced else "") + ("  bar.sync 2, 64;\n" if synced else "")
        first += "" if waits else "  tcgen05.wait::st.sync.aligned;\n"
        first += "  bar.sync 3, 64;\n" + after + free
        second = "  bar.sync 1, 64;\n  ld.shared.u32 r5, [s];\n"
        second += ("  bar.sync 2, 64;\n" if synced else "") + (after if fenced else "") + load
        second += before + "  bar.sync 3, 64;\n"
        name = "_".join(n for n, on in (("wait", waits), ("fence", fenced), ("bar", synced)) if on)
        right = waits and synced
        add(f"tcgen05_other_{name or 'none'}", verdict(right),
            TCGEN05 + "another thread's load is ordered by wait::st, a synchronization, and the "
            "fences around it", f"shared s\nP0 warp 0 all\n{first}P1 warp 4 all\n{second}",
            "P1:r0 != 7",
            "" if right and fenced else "tcgen05-fence" if right else
            "tcgen05-not-awaited race uninitialized-store",
            "sm_100a")


def write(add):
    for family in (bulk_stores, bulk_loads, plain_copies, mbarriers, clusters, named_barriers,
                   tensor_memory):
        family(add)
