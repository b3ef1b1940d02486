"""A program of numba-cuda; with the word `defect` it has one.

python -m kiln numba_add.py [defect]
"""

import sys

import numpy as np
from numba import cuda

IS_BROKEN = sys.argv[1:] == ["defect"]


@cuda.jit(lineinfo=True, debug=False)
def add(x, y, out, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i] + y[i]


n = 100
x, y = np.arange(n, dtype=np.float32), np.ones(n, np.float32)
out = cuda.device_array(n, np.float32)
try:
    add[4, 32](cuda.to_device(x), cuda.to_device(y), out, n + 1 if IS_BROKEN else n)
    assert (out.copy_to_host() == x + y).all()
    print("PASS")
except Exception as error:
    if not IS_BROKEN:
        raise
    print(error)
    sys.exit(0)
