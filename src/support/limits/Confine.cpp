// Confine: the rules for Landlock and seccomp's program.
//
// The C library of the oldest system that Kiln is built for knows no function
// for Landlock, and its headers not the newest rights: calls by number, rights
// as docs.kernel.org/userspace-api/landlock has them.
#include "support/limits/Confine.h"
#include "support/Error.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace kiln {

// A sanitizer's own threads and files are none of what is allowed here.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
static constexpr bool kIsSanitized = true;
#else
static constexpr bool kIsSanitized = false;
#endif
#else
static constexpr bool kIsSanitized = false;
#endif

#if defined(__x86_64__)
static constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
static constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
static constexpr std::uint32_t kArchitecture = 0; ///< no seccomp there
#endif

namespace landlock {

static constexpr long kCreate = 444, kAddRule = 445, kRestrict = 446;
static constexpr std::uint32_t kVersion = 1; ///< a question, no rules
static constexpr int kPathBeneath = 1;

enum Right : std::uint64_t {
  execute = 1 << 0,
  writeFile = 1 << 1,
  readFile = 1 << 2,
  readFolder = 1 << 3,
  removeFile = 1 << 5,
  makeFile = 1 << 8,
  refer = 1 << 13,
  truncate = 1 << 14,
  device = 1 << 15,
};

struct Rules {
  std::uint64_t files = 0, network = 0, scopes = 0;
};

struct __attribute__((packed)) Beneath {
  std::uint64_t allowed;
  std::int32_t folder;
};

static int version() {
  long version = ::syscall(kCreate, nullptr, 0, kVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

/// Everything that a version knows is forbidden unless a rule allows it.
static Rules rulesOf(int version) {
  constexpr std::uint64_t kFirst = (std::uint64_t(1) << 13) - 1;
  constexpr std::uint64_t kBindAndConnect = 3, kSocketsAndSignals = 3;
  Rules rules{.files = kFirst};
  if (version >= 2)
    rules.files |= refer;
  if (version >= 3)
    rules.files |= truncate;
  if (version >= 4)
    rules.network = kBindAndConnect;
  if (version >= 5)
    rules.files |= device;
  if (version >= 6)
    rules.scopes = kSocketsAndSignals;
  return rules;
}

namespace {
class Ruleset {
public:
  explicit Ruleset(int version) : rules_(rulesOf(version)) {
    // An older kernel refuses a structure with more than it knows.
    std::size_t bytes = version >= 6   ? sizeof(Rules)
                        : version >= 4 ? offsetof(Rules, scopes)
                                       : offsetof(Rules, network);
    file_ = static_cast<int>(::syscall(kCreate, &rules_, bytes, 0));
  }
  ~Ruleset() {
    if (file_ >= 0)
      ::close(file_);
  }
  Ruleset(const Ruleset &) = delete;
  Ruleset &operator=(const Ruleset &) = delete;

  /// What is not there needs no right.
  void allow(const fs::path &path, std::uint64_t rights) {
    int place = ::open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0)
      return;
    Beneath rule{rights & rules_.files, place};
    ::syscall(kAddRule, file_, kPathBeneath, &rule, 0);
    ::close(place);
  }
  /// To replace a file is to make another beside it.
  void allowWriting(const fs::path &path) {
    struct stat status;
    bool isThere = ::stat(path.c_str(), &status) == 0;
    if (isThere && !S_ISREG(status.st_mode))
      return allow(path, writeFile | truncate);
    std::error_code error;
    fs::path target = isThere ? fs::canonical(path, error) : path;
    fs::path folder = target.parent_path();
    allow(folder.empty() ? "." : folder,
          writeFile | truncate | makeFile | removeFile | readFolder);
  }
  bool restrict() { return ::syscall(kRestrict, file_, 0) == 0; }

private:
  Rules rules_;
  int file_ = -1;
};
} // namespace

static bool confine(const Confinement &confinement, int version) {
  Ruleset rules(version);
  for (const fs::path &path : confinement.read)
    rules.allow(path, readFile);
  for (const fs::path &path : confinement.written)
    rules.allowWriting(path);
  // What the process itself holds, and how many cores there are.
  rules.allow("/proc/self", readFile);
  rules.allow("/sys/devices/system/cpu", readFile);
  return rules.restrict();
}

} // namespace landlock

namespace seccomp {

/// The calls of a computation with files, the frequent ones first. What takes a
/// name is Landlock's to judge.
static constexpr int kAllowed[] = {
    SYS_futex,
    SYS_madvise,
    SYS_munmap,
    SYS_write,
    SYS_read,
    SYS_pread64,
    SYS_pwrite64,
    SYS_brk,
    SYS_mremap,
    SYS_close,
    SYS_openat,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_ftruncate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_fchmod,
    SYS_fchown,
    SYS_fcntl,
    SYS_getdents64,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_readlinkat,
    SYS_faccessat,
    SYS_utimensat,
    SYS_readv,
    SYS_writev,
    SYS_getcwd,
    SYS_dup,
    SYS_ppoll,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_rt_sigtimedwait,
    SYS_sigaltstack,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrlimit,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_membarrier,
    SYS_set_tid_address,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#if defined(__x86_64__)
    SYS_stat,
    SYS_lstat,
    SYS_open,
    SYS_rename,
    SYS_unlink,
    SYS_readlink,
    SYS_access,
    SYS_poll,
    SYS_time,
    SYS_dup2,
    SYS_arch_prctl,
#endif
};

namespace {
/// The program that looks at each call.
class Program {
public:
  Program() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
    end(SECCOMP_RET_KILL_PROCESS);
    loadCall();
    for (int call : kAllowed)
      when(call, [&] { end(SECCOMP_RET_ALLOW); });
    // Memory, and none of it to be executed.
    for (int call : {SYS_mmap, SYS_mprotect})
      when(call, [&] { allowUnless(2, PROT_EXEC); });
    when(SYS_clone, [&] { allowWhere(0, CLONE_THREAD); });
    // Its flags are in memory, which nobody can judge here; the C library takes
    // clone where there is no clone3.
    when(SYS_clone3, [&] { end(SECCOMP_RET_ERRNO | ENOSYS); });
    when(SYS_ioctl, [&] { allowEither(1, TCGETS, TIOCGWINSZ); });
    when(SYS_tgkill, [&] {
      auto self = static_cast<std::uint32_t>(::getpid());
      allowEither(0, self, self);
    });
    end(SECCOMP_RET_ERRNO | EPERM);
  }

  bool install() {
    sock_fprog program{static_cast<unsigned short>(code_.size()), code_.data()};
    // Without the last one some kernels slow the whole process down.
    unsigned flags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) ==
           0;
  }

private:
  std::vector<sock_filter> code_;

  void add(int code, std::uint32_t value, std::size_t yes = 0,
           std::size_t no = 0) {
    code_.push_back({static_cast<std::uint16_t>(code),
                     static_cast<std::uint8_t>(yes),
                     static_cast<std::uint8_t>(no), value});
  }
  void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  void loadCall() { load(offsetof(seccomp_data, nr)); }
  /// The lower half, which has every bit that is asked for.
  void loadArgument(std::size_t index) {
    load(offsetof(seccomp_data, args) + 8 * index);
  }
  void end(std::uint32_t what) { add(BPF_RET | BPF_K, what); }

  /// `body` where the call is this one; it must end.
  template <typename Body> void when(int call, const Body &body) {
    std::size_t jump = code_.size();
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call));
    body();
    code_[jump].jf = static_cast<std::uint8_t>(code_.size() - jump - 1);
  }
  void allowWhere(std::size_t argument, std::uint32_t bit) {
    loadArgument(argument);
    add(BPF_JMP | BPF_JSET | BPF_K, bit, 0, 1);
    end(SECCOMP_RET_ALLOW);
    end(SECCOMP_RET_ERRNO | EPERM);
  }
  void allowUnless(std::size_t argument, std::uint32_t bit) {
    loadArgument(argument);
    add(BPF_JMP | BPF_JSET | BPF_K, bit, 1, 0);
    end(SECCOMP_RET_ALLOW);
    end(SECCOMP_RET_ERRNO | EPERM);
  }
  void allowEither(std::size_t argument, std::uint32_t one,
                   std::uint32_t other) {
    loadArgument(argument);
    add(BPF_JMP | BPF_JEQ | BPF_K, one, 1, 0);
    add(BPF_JMP | BPF_JEQ | BPF_K, other, 0, 1);
    end(SECCOMP_RET_ALLOW);
    end(SECCOMP_RET_ERRNO | EPERM);
  }
};
} // namespace

static bool isAvailable() {
  std::uint32_t action = SECCOMP_RET_ERRNO;
  return kArchitecture != 0 &&
         ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

} // namespace seccomp

std::string ConfinementKinds::to_string() const {
  std::string name = fmt::format("Landlock (version {})", landlock);
  if (isComplete())
    return name + " and seccomp";
  if (landlock)
    return name + ", no seccomp";
  return has_seccomp ? "seccomp, no Landlock" : "neither Landlock nor seccomp";
}

ConfinementKinds availableConfinement() {
  if (kIsSanitized)
    return {};
  return {landlock::version(), seccomp::isAvailable()};
}

ConfinementKinds confine(const Confinement &confinement) {
  ConfinementKinds kinds = availableConfinement();
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return {};
  if (kinds.landlock && !landlock::confine(confinement, kinds.landlock))
    kinds.landlock = 0;
  if (kinds.has_seccomp)
    kinds.has_seccomp = seccomp::Program().install();
  return kinds;
}

} // namespace kiln
