"""Long launches: Ctrl-C, the bar, threads."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import kiln
import numpy as np

SPIN = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry spin(.param .u64 x, .param .u32 n)
{
.reg .u32 %r<3>;
.reg .pred %p;
ld.param.u32 %r2, [n];
mov.u32 %r1, 0;
again:
add.u32 %r1, %r1, 1;
setp.lt.u32 %p, %r1, %r2;
@%p bra again;
ret;
}
"""

PROGRAM = f"""
import sys, kiln
kernel = kiln.load({SPIN!r}).kernel()
print("begin", flush=True)
try:
    kernel.launch(64, 32, [None, 2**31], max_instructions=0, progress={{progress}})
except kiln.Interrupted as error:
    print(error.report.findings[0].id, error.report.verdict)
    print(kernel.launch(1, 32, [None, 3]).verdict)
"""


def run(progress: object) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.replace("{progress}", repr(progress))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert process.stdout and process.stdout.readline() == "begin\n"
    time.sleep(0.9)
    process.send_signal(signal.SIGINT)
    return process


def test_ctrl_c_ends_a_launch_with_what_was_found():
    out, error = run(None).communicate(timeout=30)
    assert out == "interrupted error\nok\n", error
    assert error == ""  # no bar in a pipe


def test_a_bar_where_it_is_asked_for():
    out, error = run(True).communicate(timeout=30)
    assert out.startswith("interrupted")
    assert "] no CTA is done yet" in error
    assert error.rstrip("\r\n").endswith(" ")  # wiped away


def test_launches_in_threads(add):
    outs = [np.zeros(64, np.float32) for _ in range(8)]
    x = np.arange(64, dtype=np.float32)
    threads = [
        threading.Thread(target=lambda out=out, by=by: add.launch(1, 64, [out, x, by, 64]))
        for by, out in enumerate(outs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for by, out in enumerate(outs):
        np.testing.assert_array_equal(out, x + by)


def test_other_threads_run_meanwhile():
    kernel, ticks, is_over = kiln.load(SPIN).kernel(), [], threading.Event()

    def tick() -> None:
        while not is_over.wait(0.01):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    kernel.launch(2, 32, [None, 2_000_000])
    is_over.set()
    thread.join()
    assert len(ticks) > 3
