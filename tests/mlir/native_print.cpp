// native_print: what MLIR programs print with, for executables that are made of
// them (make_native): MLIR's own libraries need all of LLVM.
#include <cinttypes>
#include <cstdio>

namespace {
struct Memref {
  char *allocated;
  char *aligned;
  std::int64_t offset;
  std::int64_t numbers[]; ///< sizes, then strides
};
} // namespace

/// All elements, one behind the other.
template <typename Element, typename Print>
static void printAll(std::int64_t rank, const Memref *memref, Print print,
                     std::int64_t axis = 0, std::int64_t at = 0) {
  auto *data = reinterpret_cast<const Element *>(memref->aligned);
  if (axis == rank)
    return print(data[memref->offset + at]);
  for (std::int64_t i = 0; i < memref->numbers[axis]; ++i)
    printAll<Element>(rank, memref, print, axis + 1,
                      at + i * memref->numbers[rank + axis]);
  std::puts("");
}

extern "C" {
void printMemrefF32(std::int64_t rank, const Memref *memref) {
  printAll<float>(rank, memref, [](float x) { std::printf("%g ", x); });
}
void printMemrefI32(std::int64_t rank, const Memref *memref) {
  printAll<std::int32_t>(rank, memref,
                         [](std::int32_t x) { std::printf("%d ", x); });
}
void printF32(float x) { std::printf("%g", x); }
void printI64(std::int64_t x) { std::printf("%" PRId64, x); }
void printU64(std::uint64_t x) { std::printf("%" PRIu64, x); }
void printString(const char *text) { std::fputs(text, stdout); }
void printNewline() { std::puts(""); }
}
