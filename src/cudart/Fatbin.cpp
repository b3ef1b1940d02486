// Fatbin: walk the containers, unpack, choose.
//
// A wrapper points to one container, or (version 2, -rdc=true) to a list of
// them that ends with null. A container is a header and entries, each a header
// with sizes and flags, and bytes: plain, an LZ4 block or a zstd frame.
#include "cudart/Fatbin.h"
#include "cudart/Unpack.h"
#include "kiln/base/error.h"
#include "kiln/base/file.h"
#include "support/limits/MappedMemory.h"
#include "support/text/PtxText.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace kiln::cudart {

namespace {
constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kContainerMagic = 0xBA55ED50;
constexpr std::uint32_t kElfMagic = 0x464c457f; ///< of a cubin
constexpr std::uint16_t kPtx = 1, kCubin = 2;
constexpr std::uint64_t kZstd = 0x8000; ///< packed so; otherwise by LZ4
constexpr std::uint64_t kArchSpecific = 0x100000, kFamily = 0x200000;

struct Wrapper {
  std::uint32_t magic, version;
  const void *data;
  const void *more; ///< version 2: the containers
};

struct Container {
  std::uint32_t magic;
  std::uint16_t version, headerBytes;
  std::uint64_t bytes; ///< behind the header
};

struct EntryHeader {
  std::uint16_t kind, version;
  std::uint32_t headerBytes;
  std::uint64_t storedBytes;
  std::uint32_t compressedBytes, unused;
  std::uint16_t minor, major;
  std::uint32_t arch;
  std::uint32_t nameOffset, nameBytes;
  std::uint64_t flags;
  std::uint64_t unused2;
  std::uint64_t plainBytes;
};
static_assert(sizeof(EntryHeader) == 64);

struct Entry {
  EntryHeader header;
  const char *bytes;

  std::string target() const {
    return fmt::format("sm_{}{}", header.arch,
                       header.flags & kArchSpecific ? "a"
                       : header.flags & kFamily     ? "f"
                                                    : "");
  }
};
} // namespace

/// What begins at an address that a program has handed over. Throws UserError
/// where there is no memory.
template <typename T> static T readHead(const void *from) {
  T head;
  if (mappedBytes(from, sizeof(head)) < sizeof(head))
    throw UserError(fmt::format(
        "the image of a module at {} is not in memory that can be read", from));
  std::memcpy(&head, from, sizeof(head));
  return head;
}

/// The entries of a container, as far as its size goes, and as memory does.
static std::vector<Entry> entriesOf(const void *container) {
  auto head = readHead<Container>(container);
  std::vector<Entry> entries;
  if (head.magic != kContainerMagic || head.headerBytes < sizeof(head))
    return entries;
  std::uint64_t bytes = 0;
  if (__builtin_add_overflow(head.headerBytes, head.bytes, &bytes))
    bytes = UINT64_MAX;
  std::uint64_t there = mappedBytes(container, bytes);
  if (there < bytes)
    throw UserError(fmt::format("the fat binary has {} bytes, and its header "
                                "says {}",
                                there, bytes));
  const char *at = static_cast<const char *>(container) + head.headerBytes;
  const char *end = static_cast<const char *>(container) + bytes;
  while (end - at >= static_cast<std::ptrdiff_t>(sizeof(EntryHeader))) {
    Entry entry{};
    std::memcpy(&entry.header, at, sizeof(EntryHeader));
    auto left = static_cast<std::uint64_t>(end - at);
    std::uint64_t header = entry.header.headerBytes;
    if (header < sizeof(EntryHeader) || header > left ||
        entry.header.storedBytes > left - header)
      break;
    entry.bytes = at + header;
    entries.push_back(entry);
    at += header + entry.header.storedBytes;
  }
  return entries;
}

/// The containers that a wrapper has.
static std::vector<const void *> containersOf(const void *wrapper) {
  auto head = readHead<Wrapper>(wrapper);
  std::vector<const void *> containers;
  if (head.magic != kWrapperMagic)
    return containers;
  if (head.version < 2) {
    containers.push_back(head.data);
    return containers;
  }
  auto *list = static_cast<const void *const *>(head.more);
  for (; list && readHead<const void *>(list); ++list)
    containers.push_back(*list);
  return containers;
}

/// The text of an entry; it ends at its first NUL. Throws UserError where it
/// cannot be unpacked.
static std::string textOf(const Entry &entry) {
  const EntryHeader &header = entry.header;
  std::string text;
  if (header.compressedBytes > header.storedBytes)
    throw UserError(fmt::format("an entry of the fat binary has {} bytes, and "
                                "its header says {}",
                                header.storedBytes, header.compressedBytes));
  if (header.compressedBytes == 0)
    text.assign(entry.bytes,
                std::min<std::uint64_t>(header.storedBytes, kTextLimitBytes));
  else if (header.flags & kZstd)
    text = unpackZstd({entry.bytes, header.compressedBytes}, header.plainBytes);
  else
    text = unpackLz4({entry.bytes, header.compressedBytes}, header.plainBytes);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

/// The best PTX of a container for the device; null: none.
static const Entry *choose(const std::vector<Entry> &entries,
                           const DeviceDescription &device) {
  const Entry *best = nullptr;
  auto rank = [](const Entry &entry) {
    return std::pair(entry.header.arch,
                     (entry.header.flags & (kArchSpecific | kFamily)) != 0);
  };
  for (const Entry &entry : entries)
    if (entry.header.kind == kPtx && device.runs(entry.target()) &&
        (!best || rank(entry) > rank(*best)))
      best = &entry;
  return best;
}

static FatbinText readContainers(const std::vector<const void *> &containers,
                                 const DeviceDescription &device) {
  FatbinText result;
  std::set<std::string> ptx, cubins;
  for (const void *container : containers) {
    std::vector<Entry> entries = entriesOf(container);
    for (const Entry &entry : entries)
      if (entry.header.kind == kPtx)
        ptx.insert(entry.target());
      else if (entry.header.kind == kCubin)
        cubins.insert(entry.target());
    if (const Entry *entry = choose(entries, device))
      result.ptx.push_back(textOf(*entry));
  }
  if (!result.ptx.empty())
    return result;
  std::string has;
  if (!ptx.empty())
    has = fmt::format("its PTX is for {}, which {} does not run",
                      fmt::join(ptx, ", "), device.name);
  else if (!cubins.empty())
    has = fmt::format("it has machine code for {} and no PTX",
                      fmt::join(cubins, ", "));
  else
    has = "it has neither PTX nor machine code";
  result.missing =
      fmt::format("the program has no kernels that can be simulated: {}", has);
  return result;
}

FatbinText readFatbin(const void *wrapper, const DeviceDescription &device) {
  return readContainers(containersOf(wrapper), device);
}

/// What the .target of PTX text names.
static std::vector<std::string> targetOfText(const std::string &text) {
  std::string ptx = blankCommentsAndStrings(text);
  std::size_t at = findWord(ptx, ".target");
  std::size_t begin = std::min(ptx.find("sm_", at), ptx.size());
  std::size_t end = begin;
  while (end < ptx.size() && isNameCharacter(ptx[end]))
    ++end;
  if (at == std::string::npos || begin == end)
    return {};
  return {ptx.substr(begin, end - begin)};
}

/// A comment of PTX, so that one module is as it was.
static constexpr std::string_view kNextModule =
    "\n// Kiln: here begins the next of several modules.\n";

std::string joinModules(const std::vector<std::string> &modules) {
  return fmt::format("{}", fmt::join(modules, kNextModule));
}

static std::vector<std::string> splitModules(const std::string &text) {
  std::vector<std::string> modules;
  for (std::size_t begin = 0;;) {
    std::size_t end = text.find(kNextModule, begin);
    modules.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos)
      return modules;
    begin = end + kNextModule.size();
  }
}

FatbinText readImage(const void *image, const DeviceDescription &device) {
  auto magic = readHead<std::uint32_t>(image);
  if (magic == kWrapperMagic)
    return readFatbin(image, device);
  if (magic == kContainerMagic)
    return readContainers({image}, device);
  if (magic == kElfMagic) {
    FatbinText none;
    none.missing =
        "the module is machine code (a cubin), which cannot be simulated";
    return none;
  }
  FatbinText result;
  for (std::string &text : splitModules(textOf(image))) {
    for (const std::string &target : targetOfText(text))
      if (!device.runs(target))
        return {{},
                fmt::format("the module's PTX is for {}, which {} does not run",
                            target, device.name)};
    result.ptx.push_back(std::move(text));
  }
  return result;
}

bool isText(const void *image) {
  auto magic = readHead<std::uint32_t>(image);
  return magic != kWrapperMagic && magic != kContainerMagic &&
         magic != kElfMagic;
}

std::string textOf(const void *image) {
  const auto *text = static_cast<const char *>(image);
  std::size_t there = mappedBytes(image, kTextLimitBytes);
  std::size_t bytes = strnlen(text, there);
  if (bytes == there)
    throw UserError(fmt::format("the text of a module at {} does not end "
                                "within {} bytes",
                                image, there));
  return {text, bytes};
}

std::vector<std::string> targetsOf(const void *image) {
  auto magic = readHead<std::uint32_t>(image);
  std::vector<const void *> containers;
  if (magic == kWrapperMagic)
    containers = containersOf(image);
  else if (magic == kContainerMagic)
    containers.push_back(image);
  else if (magic != kElfMagic)
    return targetOfText(textOf(image));
  std::vector<std::string> targets;
  for (const void *container : containers)
    for (const Entry &entry : entriesOf(container))
      if (entry.header.kind == kPtx)
        targets.push_back(entry.target());
  return targets;
}

std::uint64_t imageBytes(const void *image, std::size_t given) {
  Container head{};
  std::memcpy(&head, image, std::min(given, sizeof(head)));
  if (head.magic != kContainerMagic)
    return given;
  std::uint64_t bytes = 0;
  return __builtin_add_overflow(head.headerBytes, head.bytes, &bytes)
             ? UINT64_MAX
             : bytes;
}

} // namespace kiln::cudart
