// Writer: a launch file while it is written.
#pragma once

#include "check/launchfile/Keys.h"

#include <filesystem>

namespace kiln::launchfile {

class Writer {
public:
  Writer(const LaunchFile &file, std::filesystem::path folder)
      : file_(file), folder_(std::move(folder)) {}

  std::string write() const;

  // For the rows of the table.
  Json argument(const LaunchFileArgument &argument) const;
  Json launch(const LaunchSpec &launch) const;
  Json buffer(const BufferSpec &buffer) const;
  Json fields(const std::vector<LaunchFileField> &fields) const;
  /// Those that no argument declares.
  Json buffersApart() const;
  const BufferSpec &buffer(std::size_t index) const {
    return file_.buffers.at(index);
  }
  /// From the folder of the file.
  std::string nameOf(const std::string &path) const;
  /// "file:NAME.npy"; null where there is none.
  Json arrayOf(const std::string &path) const;

private:
  const LaunchFile &file_;
  std::filesystem::path folder_;
};

} // namespace kiln::launchfile
