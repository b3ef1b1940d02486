// Sparse: the one sparse function that the host must hear something from.
#include "mgpu/Call.h"

extern "C" void *kilnMgpuNotSupported(const char *name);

/// Its numbers are the sizes of what the program allocates next.
KILN_MGPU void mgpuSpMatGetSize(void *, void *rows, void *columns,
                                void *nonzeros, void *) {
  for (void *number : {rows, columns, nonzeros})
    *static_cast<std::int64_t *>(number) = 0;
  kilnMgpuNotSupported("mgpuSpMatGetSize");
}
