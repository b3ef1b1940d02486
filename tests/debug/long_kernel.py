"""long_kernel: a launch of as many warp instructions as one likes."""

import json
import os

LONG = """
.version 8.3
.target sm_90a
.address_size 64
.visible .entry long(.param .u32 rounds, .param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<5>;
    .reg .b64 %rd<3>;
    ld.param.u32 %r1, [rounds];
    ld.param.u64 %rd1, [out];
    mov.u32 %r2, 0;
    mov.u32 %r3, 1;
loop:
    mad.lo.u32 %r3, %r3, 1664525, %r2;
    add.u32 %r2, %r2, 1;
    setp.lt.u32 %p, %r2, %r1;
    @%p bra loop;
    st.global.u32 [%rd1], %r3;
    ret;
}
"""


def write_long(folder, rounds, warps=1):
    """long.ptx and long.json: four instructions of each warp in each round."""
    with open(os.path.join(folder, "long.ptx"), "w", encoding="utf-8") as file:
        file.write(LONG)
    launch = {"ptx": ["long.ptx"], "grid": [1, 1, 1], "block": [32 * warps, 1, 1],
              "args": [{"scalar": "u32", "value": rounds},
                       {"buffer": "out", "type": "u32", "shape": [1],
                        "output": True}]}
    with open(os.path.join(folder, "long.json"), "w", encoding="utf-8") as file:
        json.dump(launch, file)
