// fail_nth: a library for LD_PRELOAD that lets one call of a program fail.
//
//     KILN_FAULT=malloc:123    the 123rd call of malloc and its like finds no
//     memory KILN_FAULT=write:list    fails nothing; writes "function number"
//     to KILN_FAULT_LIST=FILE     this file for the first call of each call
//     stack
//
// Functions: malloc, mmap, pthread_create, write, fsync, rename; `all:list`
// lists them all. Calls are counted from main on: what comes before belongs to
// the loader. Where MLIR calls malloc itself, and not operator new, it writes
// to the result without a look at it; those calls are left out.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

extern "C" {
void *__libc_malloc(std::size_t bytes);
void *__libc_calloc(std::size_t count, std::size_t bytes);
void *__libc_realloc(void *memory, std::size_t bytes);
void *__libc_memalign(std::size_t align, std::size_t bytes);
}

namespace {

enum Function { mallocs, mmaps, threads, writes, fsyncs, renames, functions };
constexpr const char *kNames[functions] = {"malloc", "mmap",  "pthread_create",
                                           "write",  "fsync", "rename"};

std::atomic<bool> isCounting{false};
std::atomic<std::uint64_t> calls[functions];
int chosen = -1;              ///< the function that fails
std::uint64_t chosenCall = 0; ///< 0: none
int listFile = -1;
thread_local bool isInside = false; ///< of a listing, which may allocate

/// Stacks that have been listed, by a hash of their return addresses.
constexpr std::size_t kSlots = std::size_t(1) << 18;
std::atomic<std::uint64_t> listed[kSlots];

struct Walk {
  std::uint64_t hash = 1469598103934665603ULL;
  int depth = 0;
};

_Unwind_Reason_Code addFrame(_Unwind_Context *context, void *to) {
  constexpr int kDepth = 6;
  auto *walk = static_cast<Walk *>(to);
  walk->hash = (walk->hash ^ _Unwind_GetIP(context)) * 1099511628211ULL;
  return ++walk->depth < kDepth ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/// Whether this stack is seen for the first time.
bool isNew(Function function) {
  Walk walk;
  _Unwind_Backtrace(addFrame, &walk);
  std::uint64_t hash = (walk.hash + function) | 1;
  for (std::size_t at = hash % kSlots;; at = (at + 1) % kSlots) {
    std::uint64_t there = 0;
    if (listed[at].compare_exchange_strong(there, hash))
      return true;
    if (there == hash)
      return false;
  }
}

void list(Function function, std::uint64_t call) {
  isInside = true;
  if (isNew(function)) {
    char line[64];
    int size = std::snprintf(line, sizeof line, "%s %llu\n", kNames[function],
                             static_cast<unsigned long long>(call));
    ::syscall(SYS_write, listFile, line, size);
  }
  isInside = false;
}

/// Count a call; true: it is the one that fails.
bool fails(Function function) {
  if (!isCounting.load(std::memory_order_relaxed) || isInside)
    return false;
  std::uint64_t call = ++calls[function];
  if (listFile >= 0 && (chosen < 0 || chosen == function))
    list(function, call);
  return chosen == function && call == chosenCall;
}

/// Code of libMLIR and libLLVM.
struct Range {
  std::uintptr_t begin, end;
};
Range unchecked[4];
int uncheckedCount = 0;

int noteLibrary(dl_phdr_info *library, std::size_t, void *) {
  if (!std::strstr(library->dlpi_name, "libMLIR") &&
      !std::strstr(library->dlpi_name, "libLLVM"))
    return 0;
  for (int i = 0; i < library->dlpi_phnum && uncheckedCount < 4; ++i) {
    const auto &part = library->dlpi_phdr[i];
    std::uintptr_t begin = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && part.p_flags & PF_X)
      unchecked[uncheckedCount++] = {begin, begin + part.p_memsz};
  }
  return 0;
}

bool isUnchecked(const void *caller) {
  auto at = reinterpret_cast<std::uintptr_t>(caller);
  for (int i = 0; i < uncheckedCount; ++i)
    if (at >= unchecked[i].begin && at < unchecked[i].end)
      return true;
  return false;
}

template <typename F> F next(const char *name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

/// Read the plan; programs that this one starts have none.
void begin() {
  const char *plan = std::getenv("KILN_FAULT");
  const char *colon = plan ? std::strchr(plan, ':') : nullptr;
  if (!colon)
    return;
  for (int i = 0; i < functions; ++i)
    if (std::strlen(kNames[i]) == static_cast<std::size_t>(colon - plan) &&
        std::strncmp(plan, kNames[i], std::strlen(kNames[i])) == 0)
      chosen = i;
  chosenCall = std::strtoull(colon + 1, nullptr, 10);
  if (const char *path = std::getenv("KILN_FAULT_LIST"))
    listFile = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  unsetenv("KILN_FAULT");
  unsetenv("KILN_FAULT_LIST");
  unsetenv("LD_PRELOAD");
  dl_iterate_phdr(noteLibrary, nullptr);
  isCounting = true;
}

int (*programMain)(int, char **, char **);

int countedMain(int argc, char **argv, char **environment) {
  begin();
  return programMain(argc, argv, environment);
}

} // namespace

extern "C" {

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv,
                      void (*init)(), void (*fini)(), void (*rtldFini)(),
                      void *stackEnd) {
  programMain = main;
  return next<decltype(&__libc_start_main)>("__libc_start_main")(
      countedMain, argc, argv, init, fini, rtldFini, stackEnd);
}

void *malloc(std::size_t bytes) {
  if (isUnchecked(__builtin_return_address(0)) || !fails(mallocs))
    return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}

void *calloc(std::size_t count, std::size_t bytes) {
  if (isUnchecked(__builtin_return_address(0)) || !fails(mallocs))
    return __libc_calloc(count, bytes);
  errno = ENOMEM;
  return nullptr;
}

void *realloc(void *memory, std::size_t bytes) {
  if (isUnchecked(__builtin_return_address(0)) || !fails(mallocs))
    return __libc_realloc(memory, bytes);
  errno = ENOMEM;
  return nullptr;
}

void *aligned_alloc(std::size_t align, std::size_t bytes) {
  if (!fails(mallocs))
    return __libc_memalign(align, bytes);
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void **to, std::size_t align, std::size_t bytes) {
  void *memory = fails(mallocs) ? nullptr : __libc_memalign(align, bytes);
  if (memory)
    *to = memory;
  return memory ? 0 : ENOMEM;
}

void *mmap(void *at, std::size_t bytes, int use, int flags, int file,
           off_t offset) noexcept {
  if (!fails(mmaps))
    return next<decltype(&::mmap)>("mmap")(at, bytes, use, flags, file, offset);
  errno = ENOMEM;
  return MAP_FAILED;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*body)(void *), void *argument) noexcept {
  if (fails(threads))
    return EAGAIN;
  return next<decltype(&::pthread_create)>("pthread_create")(thread, attributes,
                                                             body, argument);
}

ssize_t write(int file, const void *bytes, std::size_t size) {
  if (!fails(writes))
    return next<decltype(&::write)>("write")(file, bytes, size);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite(int file, const void *bytes, std::size_t size, off_t offset) {
  if (!fails(writes))
    return next<decltype(&::pwrite)>("pwrite")(file, bytes, size, offset);
  errno = ENOSPC;
  return -1;
}

ssize_t pwrite64(int file, const void *bytes, std::size_t size,
                 off64_t offset) {
  if (!fails(writes))
    return next<decltype(&::pwrite64)>("pwrite64")(file, bytes, size, offset);
  errno = ENOSPC;
  return -1;
}

int fsync(int file) {
  if (!fails(fsyncs))
    return next<decltype(&::fsync)>("fsync")(file);
  errno = EIO;
  return -1;
}

int rename(const char *from, const char *to) noexcept {
  if (!fails(renames))
    return next<decltype(&::rename)>("rename")(from, to);
  errno = EIO;
  return -1;
}

} // extern "C"
