// Capture: the launch file, its arrays and its PTX.
#include "cudart/Capture.h"
#include "kiln/check/launch_file.h"
#include "support/AtomicFile.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/text/Npy.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <unistd.h>

namespace kiln::cudart {

namespace fs = std::filesystem;

/// Throws where a file of the folder was not written.
static void checkWritten(const fs::path &path, int failure) {
  if (failure != 0)
    runtimeError("{} cannot be written: {}", path.string(),
                 std::strerror(failure));
}

static void writeText(const fs::path &path, const std::string &text) {
  checkWritten(path, writeFileAtomically(path, {text}, Links::replace));
}

Capture::Capture(std::string folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    userError("the folder {} for captured launches cannot be made: {}", folder_,
              error.message());
}

std::vector<std::string>
Capture::addModule(const std::vector<std::string> &texts) {
  std::string hashes;
  for (const std::string &text : texts)
    hashes += hashHex(text);
  std::lock_guard lock(mutex_);
  if (auto known = modules_.find(hashes); known != modules_.end())
    return known->second;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string part = texts.size() > 1 ? fmt::format("-{}", i + 1) : "";
    std::string name =
        fmt::format("module-{}{}.ptx", modules_.size() + 1, part);
    writeText(fs::path(folder_) / name, texts[i]);
    names.push_back(std::move(name));
  }
  return modules_[hashes] = names;
}

/// "device_kernel" for "void cutlass::device_kernel<...>(...)".
static std::string shortName(const std::string &kernel) {
  std::string name = kernel.substr(0, kernel.find_first_of("<("));
  std::size_t front = name.find_last_of(": ");
  name = name.substr(front == std::string::npos ? 0 : front + 1);
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return name.substr(0, 60);
}

namespace {
/// What a launch began with, while it is written.
class CapturedMemory {
public:
  CapturedMemory(const fs::path &folder, std::string name,
                 const LaunchDescription &launch, const Snapshot &before)
      : folder_(folder), name_(std::move(name)), launch_(launch),
        memory_(before.memory()) {
    nameMemory();
  }

  LaunchFileArgument argumentOf(std::span<const std::byte> bytes) const;
  BufferSpec bufferOf(std::size_t index) const;
  std::size_t bufferCount() const { return memory_.size(); }

private:
  void nameMemory();
  bool isVariable(const Snapshot::Memory &memory) const;
  void writeContents(std::size_t index, BufferSpec &buffer) const;
  /// "FOLDER/3-scale/buffer 0.npy"
  std::string fileOf(std::size_t index, const char *ending) const {
    return (folder_ / name_ / fmt::format("{}{}.npy", names_[index], ending))
        .string();
  }

  fs::path folder_;
  std::string name_;
  const LaunchDescription &launch_;
  std::vector<Snapshot::Memory> memory_;
  std::vector<std::string> names_; ///< of each, no two the same
  std::vector<bool> isVariable_;
};
} // namespace

bool CapturedMemory::isVariable(const Snapshot::Memory &memory) const {
  try {
    return launch_.module->variable(memory.name).address() == memory.address;
  } catch (const UserError &) {
    return false;
  }
}

void CapturedMemory::nameMemory() {
  std::set<std::string> taken;
  for (const Snapshot::Memory &memory : memory_) {
    isVariable_.push_back(isVariable(memory));
    if (isVariable_.back())
      taken.insert(memory.name);
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    std::string base = memory_[i].name;
    for (char &c : base)
      if (!std::isalnum(static_cast<unsigned char>(c)) &&
          !std::strchr(" _-$.", c))
        c = '_';
    std::string name = base;
    if (!isVariable_[i])
      for (int count = 2; !taken.insert(name).second; ++count)
        name = fmt::format("{}.{}", base, count);
    names_.push_back(std::move(name));
  }
}

/// A number of 1, 2, 4 or 8 bytes.
static std::uint64_t numberOf(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

LaunchFileArgument
CapturedMemory::argumentOf(std::span<const std::byte> bytes) const {
  constexpr Type kBits[] = {Type::u8, Type::u16, Type::u32, Type::u64};
  std::size_t size = bytes.size();
  if (size == 8) {
    std::uint64_t address = numberOf(bytes);
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (std::uint64_t offset = address - memory_[i].address;
          address >= memory_[i].address && offset < memory_[i].bytes)
        return {PointerArgument{.index = i, .offset = offset}};
  }
  for (Type type : kBits)
    if (size == static_cast<std::size_t>(size_bytes(type)))
      return {Scalar(type, numberOf(bytes))};
  StructArgument record{.bytes = size};
  for (std::size_t offset = 0; offset < size;) {
    std::size_t step = size - offset >= 8 ? 8 : 1;
    if (numberOf(bytes.subspan(offset, step)))
      record.fields.push_back(
          {offset, argumentOf(bytes.subspan(offset, step))});
    offset += step;
  }
  return {std::move(record)};
}

/// Write what lay in a buffer that the launch has touched.
void CapturedMemory::writeContents(std::size_t index,
                                   BufferSpec &buffer) const {
  const Snapshot::Memory &memory = memory_[index];
  bool isEmpty = !memory.written.empty() &&
                 std::all_of(memory.written.begin(), memory.written.end(),
                             [](std::byte b) { return b == std::byte(0); });
  if (isEmpty) {
    buffer.init = {.kind = BufferInit::Kind::poison};
    return;
  }
  buffer.init = {.kind = BufferInit::Kind::file, .path = fileOf(index, "")};
  writeNpyPieces(buffer.init->path, memory.bytes, memory.pieces);
  if (memory.written.empty())
    return;
  buffer.written_path = fileOf(index, ".written");
  writeNpyPieces(buffer.written_path, memory.written.size(),
                 {{0, memory.written}});
}

BufferSpec CapturedMemory::bufferOf(std::size_t index) const {
  const Snapshot::Memory &memory = memory_[index];
  BufferSpec buffer{.name = names_[index],
                    .type = Type::u8,
                    .shape = {memory.bytes},
                    .address = memory.address,
                    .is_variable = isVariable_[index]};
  if (memory.is_touched) {
    writeContents(index, buffer);
    buffer.is_output = memory.is_written;
  }
  return buffer;
}

void Capture::write(const LaunchNote &note, const LaunchDescription &launch,
                    const std::vector<std::string> &ptx,
                    const Snapshot &before) {
  std::string name = fmt::format("{}-{}", note.number, shortName(note.kernel));
  fs::path path = fs::path(folder_) / (name + ".json");
  checkWritten(fs::path(folder_) / name, makeFolderInside(folder_, name));
  // An older launch file would name the arrays of two launches until this one
  // is there; and no link is written through.
  ::unlink(path.c_str());
  CapturedMemory memory(folder_, name, launch, before);
  LaunchSpec spec{.kernel = launch.name,
                  .grid = launch.grid,
                  .block = launch.block,
                  .cluster = launch.cluster,
                  .dynamic_smem_bytes = launch.dynamic_smem_bytes};
  for (const LaunchParameter &parameter : launch.parameters)
    spec.arguments.push_back(
        memory.argumentOf(std::get<std::vector<std::byte>>(parameter.value)));
  LaunchFile file{.is_co_resident = launch.cooperative};
  for (const std::string &text : ptx)
    file.ptx_paths.push_back((fs::path(folder_) / text).string());
  for (std::size_t i = 0; i < memory.bufferCount(); ++i)
    file.buffers.push_back(memory.bufferOf(i));
  spec.notes = {LaunchFileNote::of("x-launch", note.kernel)};
  file.launches = {std::move(spec)};
  file.save(path.string());
}

} // namespace kiln::cudart
