// FirstLaunchFile: a launch file for PTX, to be filled in: arguments by what
// the kernel does with its parameters (kiln/check/outline.h), and a sentence
// for each thing that had to be guessed.
#include "kiln/check/launch_file.h"
#include "kiln/check/outline.h"
#include "support/Error.h"

#include <algorithm>
#include <cctype>
#include <fmt/ranges.h>
#include <set>

namespace kiln::launchfile {

namespace {

class Guess {
public:
  LaunchFile write(const std::vector<PtxEntry> &entries);

private:
  LaunchSpec launchOf(const PtxEntry &entry);
  LaunchFileArgument argumentOf(const PtxParameter &parameter,
                                std::size_t number);
  LaunchFileArgument fieldOf(const PtxField &field, const std::string &name);
  LaunchFileArgument pointerOf(const PtxField &field, const std::string &name);
  LaunchFileArgument mapOf(const PtxField &field, const std::string &name);
  std::string unique(const std::string &name);

  /// Of a buffer whose shape is to be filled in.
  static constexpr std::uint64_t kElements = 1024;

  LaunchFile file_;
  std::set<std::string> names_;
  bool hasNumbers_ = false;
};

} // namespace

/// A name for a buffer, which is a file's name too; "_Z3addPf_param_0" tells
/// nothing.
static std::string nameOf(const PtxParameter &parameter, std::size_t number) {
  std::string name;
  for (unsigned char c : parameter.name)
    if (std::isalnum(c) || c == '_')
      name += static_cast<char>(c);
  if (name.empty() || name.find("_param_") != std::string::npos)
    return fmt::format("arg{}", number);
  return name;
}

std::string Guess::unique(const std::string &name) {
  std::string result = name;
  for (int i = 2; !names_.insert(result).second; ++i)
    result = fmt::format("{}_{}", name, i);
  return result;
}

static BufferInit randomInit(std::size_t seed) {
  return {.kind = BufferInit::Kind::random, .seed = seed};
}

LaunchFileArgument Guess::pointerOf(const PtxField &field,
                                    const std::string &name) {
  BufferSpec buffer{
      .name = unique(name), .type = field.type, .shape = {kElements}};
  // Integers are counters and indices: random ones lead anywhere.
  if (field.is_read || !field.is_written)
    buffer.init = is_float(field.type)
                      ? randomInit(names_.size())
                      : BufferInit{.kind = BufferInit::Kind::zeros};
  buffer.is_output = field.is_written;
  if (!field.is_read && !field.is_written)
    buffer.notes = {LaunchFileNote::of(
        "x-note", "no access by this pointer was found: guessed")};
  else if (field.is_type_guessed)
    buffer.notes = {LaunchFileNote::of(
        "x-note", fmt::format("the type is a guess, of {} bytes{}",
                              size_bytes(field.type),
                              field.type == Type::u64
                                  ? "; pointers inside the buffer are `fields`"
                                  : ""))};
  file_.buffers.push_back(std::move(buffer));
  return {PointerArgument{.index = file_.buffers.size() - 1,
                          .is_declaration = true}};
}

/// A map of 64 by 64 halves, and the buffer that it maps.
LaunchFileArgument Guess::mapOf(const PtxField &field,
                                const std::string &name) {
  constexpr std::uint32_t kSize = 64, kRowBytes = 128;
  int rank = field.rank ? field.rank : 2;
  TensorMapArgument argument{.index = file_.buffers.size()};
  TensorMap &map = argument.map;
  for (int i = 0; i < rank; ++i) {
    map.dims.push_back(i < 2 ? kSize : 1);
    map.box.push_back(i < 2 ? kSize : 1);
    if (i)
      map.strides_bytes.push_back(i == 1 ? kRowBytes : kRowBytes * kSize);
  }
  BufferSpec data{.name = unique(name + "_data"),
                  .type = map.type,
                  .shape = {map.dims.rbegin(), map.dims.rend()},
                  .is_output = field.is_written};
  if (!field.is_written)
    data.init = randomInit(names_.size());
  file_.buffers.push_back(std::move(data));
  return {
      std::move(argument),
      {LaunchFileNote::of("x-note", field.rank ? "all but the rank is a guess"
                                               : "guessed by its 128 bytes")}};
}

LaunchFileArgument Guess::fieldOf(const PtxField &field,
                                  const std::string &name) {
  if (field.kind == PtxField::Kind::pointer)
    return pointerOf(field, name);
  if (field.kind == PtxField::Kind::tensor_map)
    return mapOf(field, name);
  hasNumbers_ = true;
  return {Scalar(field.type, 0)};
}

LaunchFileArgument Guess::argumentOf(const PtxParameter &parameter,
                                     std::size_t number) {
  std::string name = nameOf(parameter, number);
  if (!parameter.is_struct) {
    LaunchFileArgument result = fieldOf(parameter.fields[0], name);
    if (std::holds_alternative<Scalar>(result.value) &&
        name != fmt::format("arg{}", number))
      result.notes = {LaunchFileNote::of("x-name", name)};
    return result;
  }
  StructArgument record{.bytes = parameter.bytes};
  for (const PtxField &field : parameter.fields)
    record.fields.push_back(
        {field.offset,
         fieldOf(field, fmt::format("{}_{}", name, field.offset))});
  LaunchFileArgument result{std::move(record)};
  if (parameter.is_indexed)
    result.notes = {LaunchFileNote::of(
        "x-note", "it is also read at places that are computed, which "
                  "are not among its fields")};
  return result;
}

LaunchSpec Guess::launchOf(const PtxEntry &entry) {
  std::vector<std::string> unknown = {"grid: CTAs, not threads"};
  LaunchSpec launch{.kernel = entry.name,
                    .grid = entry.cluster,
                    .block = entry.block,
                    .cluster = entry.cluster};
  if (!entry.block[0]) {
    launch.block = {128, 1, 1};
    unknown.push_back("block: the PTX says nothing of it");
  } else if (!entry.is_block_required) {
    unknown.push_back("block: at most this, by .maxntid");
  }
  if (!entry.dynamic_smem.empty()) {
    launch.dynamic_smem_bytes = 0;
    unknown.push_back(
        fmt::format("dynamic_smem: the bytes of {}, which {} no "
                    "size in the PTX",
                    fmt::join(entry.dynamic_smem, " and "),
                    entry.dynamic_smem.size() > 1 ? "have" : "has"));
  }
  std::size_t buffers = file_.buffers.size();
  hasNumbers_ = false;
  for (std::size_t i = 0; i < entry.parameters.size(); ++i)
    launch.arguments.push_back(argumentOf(entry.parameters[i], i));
  if (file_.buffers.size() != buffers)
    unknown.push_back("args: shapes, what buffers begin with (init), and what "
                      "should come out (expected)");
  if (hasNumbers_)
    unknown.push_back("args: the values of numbers, which are 0 here");
  launch.notes = {LaunchFileNote::of("x-fill-in", unknown)};
  return launch;
}

LaunchFile Guess::write(const std::vector<PtxEntry> &entries) {
  for (const PtxEntry &entry : entries)
    file_.launches.push_back(launchOf(entry));
  return std::move(file_);
}

} // namespace kiln::launchfile

namespace kiln {

LaunchFile first_launch_file(const Kernel &kernel) {
  return kernel.name.empty() ? launchfile::Guess().write(outline(kernel.ptx))
                             : launch_file_of(kernel, {});
}

} // namespace kiln
