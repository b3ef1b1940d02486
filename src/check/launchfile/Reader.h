// Reader: a launch file while it is read. Buffers are declared first, so that
// an argument may name one that is declared behind it.
#pragma once

#include "check/launchfile/Keys.h"

#include <filesystem>
#include <map>

namespace kiln::launchfile {

class Reader {
public:
  explicit Reader(std::filesystem::path folder) : folder_(std::move(folder)) {}

  LaunchFile read(const JsonNode &root);

  // For the rows of the table.
  void declareBuffers(const JsonNode &list);
  void readLaunches(const JsonNode &list, LaunchFile &file);
  /// Read when every buffer is known: fields may name any.
  void readLater(const JsonNode &fields);
  LaunchFileArgument argument(const JsonNode &node);
  /// A field whose offset may be so large.
  LaunchFileField readField(const JsonNode &node, std::uint64_t most);
  std::uint64_t mostOffset() const { return mostOffset_; }
  /// A launch that is read now is not the first.
  bool isBehindAnother() const { return !file_.launches.empty(); }
  std::size_t findBuffer(const JsonNode &name) const;
  const BufferSpec &buffer(std::size_t index) const {
    return file_.buffers[index];
  }
  /// "file:NAME.npy": the file's path.
  std::string arrayOf(const JsonNode &node) const;
  std::string pathOf(const std::string &name) const {
    return (folder_ / name).string();
  }

private:
  void declare(const JsonNode &entry);
  void declareIn(const JsonNode &argument);
  void declareAll(const JsonNode &launch);
  void readFields(const JsonNode &list, std::size_t index);
  PointerArgument pointer(const JsonNode &node);
  LaunchSpec launch(const JsonNode &node);

  std::filesystem::path folder_;
  LaunchFile file_;
  std::map<std::string, std::size_t> index_;
  /// Lists of fields, and whose they are.
  std::vector<std::pair<JsonNode, std::size_t>> fields_;
  std::uint64_t mostOffset_ = 0;
  bool mayDeclare_ = true; ///< arguments may; fields of buffers may not
};

} // namespace kiln::launchfile
