// Capture: the launch file, its arrays and its PTX.
#include "cudart/Capture.h"
#include "kiln/base/file.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/text/Npy.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <unistd.h>

namespace kiln::cudart {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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
    write_file((fs::path(folder_) / name).string(), {texts[i]});
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

/// An array of bytes of which some pieces are given; the rest are holes.
static void writeArray(
    const fs::path &path, std::size_t bytes,
    const std::vector<std::pair<std::size_t, std::vector<std::byte>>> &pieces) {
  std::string header = npyHeader(Type::u8, {bytes});
  int file =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  auto write = [&](const void *data, std::size_t size, std::size_t at) {
    const auto *from = static_cast<const char *>(data);
    while (size > 0) {
      ssize_t count = ::pwrite(file, from, size, static_cast<off_t>(at));
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return false;
      from += count;
      at += static_cast<std::size_t>(count);
      size -= static_cast<std::size_t>(count);
    }
    return true;
  };
  bool isWritten =
      file >= 0 && write(header.data(), header.size(), 0) &&
      ::ftruncate(file, static_cast<off_t>(header.size() + bytes)) == 0;
  for (const auto &[offset, data] : pieces)
    isWritten =
        isWritten && write(data.data(), data.size(), header.size() + offset);
  int failure = errno;
  if (file >= 0 && ::close(file) != 0 && isWritten) {
    isWritten = false;
    failure = errno;
  }
  if (!isWritten)
    runtimeError("{} cannot be written: {}", path.string(),
                 std::strerror(failure));
}

namespace {
/// One launch while it is written.
class Writer {
public:
  Writer(const fs::path &folder, std::string name,
         const LaunchDescription &launch, const Snapshot &before)
      : folder_(folder), name_(std::move(name)), launch_(launch),
        memory_(before.memory()) {
    nameMemory();
  }

  Json argumentOf(std::span<const std::byte> bytes) const;
  Json bufferOf(std::size_t index) const;
  std::size_t bufferCount() const { return memory_.size(); }

private:
  void nameMemory();
  bool isVariable(const Snapshot::Memory &memory) const;
  /// "file:3-scale/buffer 0.npy"
  std::string fileOf(std::size_t index, const char *ending) const {
    return fmt::format("{}/{}{}.npy", name_, names_[index], ending);
  }

  fs::path folder_;
  std::string name_;
  const LaunchDescription &launch_;
  std::vector<Snapshot::Memory> memory_;
  std::vector<std::string> names_; ///< of each, no two the same
  std::vector<bool> isVariable_;
};
} // namespace

bool Writer::isVariable(const Snapshot::Memory &memory) const {
  try {
    return launch_.module->variable(memory.name).address() == memory.address;
  } catch (const UserError &) {
    return false;
  }
}

void Writer::nameMemory() {
  std::set<std::string> taken;
  for (const Snapshot::Memory &memory : memory_) {
    isVariable_.push_back(isVariable(memory));
    if (isVariable_.back())
      taken.insert(memory.name);
  }
  for (std::size_t i = 0; i < memory_.size(); ++i) {
    std::string name = memory_[i].name;
    for (char &c : name)
      if (!std::isalnum(static_cast<unsigned char>(c)) &&
          !std::strchr(" _-$.", c))
        c = '_';
    if (!isVariable_[i])
      for (int count = 2; !taken.insert(name).second; ++count)
        name = fmt::format("{}.{}", memory_[i].name, count);
    names_.push_back(std::move(name));
  }
}

/// A number of 1, 2, 4 or 8 bytes.
static std::uint64_t numberOf(std::span<const std::byte> bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

Json Writer::argumentOf(std::span<const std::byte> bytes) const {
  std::size_t size = bytes.size();
  if (size == 8) {
    std::uint64_t address = numberOf(bytes);
    for (std::size_t i = 0; i < memory_.size(); ++i)
      if (std::uint64_t offset = address - memory_[i].address;
          address >= memory_[i].address && offset < memory_[i].bytes) {
        Json pointer = {{"buffer", names_[i]}};
        if (offset)
          pointer["offset"] = offset;
        return pointer;
      }
  }
  if (size == 1 || size == 2 || size == 4 || size == 8)
    return {{"scalar", fmt::format("u{}", 8 * size)},
            {"value", numberOf(bytes)}};
  Json fields = Json::array();
  for (std::size_t offset = 0; offset < size;) {
    std::size_t step = size - offset >= 8 ? 8 : 1;
    if (numberOf(bytes.subspan(offset, step)))
      fields.push_back({{"offset", offset},
                        {"arg", argumentOf(bytes.subspan(offset, step))}});
    offset += step;
  }
  return {{"struct", {{"size", size}, {"fields", fields}}}};
}

Json Writer::bufferOf(std::size_t index) const {
  const Snapshot::Memory &memory = memory_[index];
  Json row = {{"buffer", names_[index]},
              {"type", "u8"},
              {"shape", {memory.bytes}},
              {"address", fmt::format("{:#x}", memory.address)}};
  if (isVariable_[index])
    row["variable"] = true;
  if (!memory.is_touched)
    return row;
  bool isEmpty = !memory.written.empty() &&
                 std::all_of(memory.written.begin(), memory.written.end(),
                             [](std::byte b) { return b == std::byte(0); });
  if (isEmpty) {
    row["init"] = "poison";
  } else {
    std::string file = fileOf(index, "");
    writeArray(folder_ / file, memory.bytes, memory.pieces);
    row["init"] = "file:" + file;
  }
  if (!isEmpty && !memory.written.empty()) {
    std::string file = fileOf(index, ".written");
    writeArray(folder_ / file, memory.written.size(), {{0, memory.written}});
    row["written"] = "file:" + file;
  }
  if (memory.is_written)
    row["output"] = true;
  return row;
}

/// A value in one line; names are what the program says.
static std::string textOf(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The values of a list, a line each.
static std::string lines(const std::vector<Json> &rows) {
  std::string text;
  for (const Json &row : rows)
    text += fmt::format("{}\n    {}", text.empty() ? "" : ",", textOf(row));
  return text;
}

void Capture::write(const LaunchNote &note, const LaunchDescription &launch,
                    const std::vector<std::string> &ptx,
                    const Snapshot &before) {
  std::string name = fmt::format("{}-{}", note.number, shortName(note.kernel));
  std::error_code error;
  fs::create_directories(fs::path(folder_) / name, error); // told by the files
  Writer writer(folder_, name, launch, before);
  std::vector<Json> arguments, buffers;
  for (const LaunchParameter &parameter : launch.parameters)
    arguments.push_back(
        writer.argumentOf(std::get<std::vector<std::byte>>(parameter.value)));
  for (std::size_t i = 0; i < writer.bufferCount(); ++i)
    buffers.push_back(writer.bufferOf(i));
  Json head = {{"x-launch", note.kernel},
               {"ptx", ptx},
               {"kernel", launch.name},
               {"grid", launch.grid},
               {"block", launch.block}};
  if (launch.cluster != std::array<std::uint32_t, 3>{1, 1, 1})
    head["cluster"] = launch.cluster;
  head["dynamic_smem"] = launch.dynamic_smem_bytes;
  if (launch.cooperative)
    head["co_resident"] = true;
  std::string text = "{";
  for (const auto &[key, value] : head.items())
    text += fmt::format("\n  \"{}\": {},", key, textOf(value));
  text += fmt::format("\n  \"args\": [{}],\n  \"buffers\": [{}]\n}}\n",
                      lines(arguments), lines(buffers));
  write_file((fs::path(folder_) / (name + ".json")).string(), {text});
}

} // namespace kiln::cudart
