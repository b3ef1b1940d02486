"""nvJitLink by Kiln: two modules of PTX, of which one calls the other's function,
are linked, loaded and launched; what is no PTX is refused with a sentence.

python -m kiln jitlink.py
"""

import ctypes

import numpy as np

from kiln.frameworks import cuda, memory

HEAD = b".version 8.0\n.target sm_90\n.address_size 64\n"
CALLEE = (
    HEAD
    + b"""
.visible .func (.param .b32 result) twice(.param .b32 value)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [value];
  add.u32 %r2, %r1, %r1;
  st.param.b32 [result], %r2;
  ret;
}
"""
)
CALLER = (
    HEAD
    + b"""
.extern .func (.param .b32 result) twice(.param .b32 value);
.visible .entry kernel(.param .u64 out)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  {
    .param .b32 p;
    .param .b32 q;
    st.param.b32 [p], 21;
    call.uni (q), twice, (p);
    ld.param.b32 %r1, [q];
  }
  st.global.u32 [%rd1], %r1;
  ret;
}
"""
)
PTX, LTOIR = 2, 3

library = ctypes.CDLL("libnvJitLink.so.13")
linker = ctypes.c_void_p()
options = (ctypes.c_char_p * 1)(b"-arch=sm_90")
assert library.nvJitLinkCreate(ctypes.byref(linker), 1, options) == 0
for text in (CALLER, CALLEE):
    size = ctypes.c_size_t(len(text))
    assert library.nvJitLinkAddData(linker, PTX, text, size, b"module") == 0
assert library.nvJitLinkAddData(linker, LTOIR, b"\x7fELF", ctypes.c_size_t(4), b"other") != 0
size = ctypes.c_size_t()
assert library.nvJitLinkGetErrorLogSize(linker, ctypes.byref(size)) == 0
log = ctypes.create_string_buffer(size.value)
assert library.nvJitLinkGetErrorLog(linker, log) == 0
assert b"other is no PTX, and Kiln links PTX alone" in log.value, log.value
assert library.nvJitLinkComplete(linker) == 0
assert library.nvJitLinkGetLinkedCubinSize(linker, ctypes.byref(size)) == 0
image = ctypes.create_string_buffer(size.value)
assert library.nvJitLinkGetLinkedCubin(linker, image) == 0
assert library.nvJitLinkDestroy(ctypes.byref(linker)) == 0

module, function = ctypes.c_void_p(), ctypes.c_void_p()
cuda.call("cuModuleLoadData", ctypes.byref(module), image)
cuda.call("cuModuleGetFunction", ctypes.byref(function), module, b"kernel")
out = np.zeros(1, np.int32)
address = ctypes.c_uint64(memory.address_of(out))
cuda.launch(function.value, (1, 1, 1), (1, 1, 1), [address])
assert out[0] == 42, out
print("PASS")
