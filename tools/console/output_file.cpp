// output_file: check, write, and say why not.
#include "output_file.h"

#include <kiln/base/file.h>
#include <kiln/base/text.h>

#include <cstdio>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

void write_output(const std::string &path, const std::string &text) {
  if (!path.empty())
    return write_file(path, {text});
  std::string shown = isatty(STDOUT_FILENO) ? printable(text) : text;
  std::fwrite(shown.data(), 1, shown.size(), stdout);
}

void check_output(const char *option, const std::string &path) {
  if (path.empty())
    return;
  try {
    check_writable(path);
  } catch (const UserError &error) {
    throw UserError(fmt::format("{} {}", option, error.message()));
  }
}

void make_folder(const char *option, const std::string &folder) {
  if (folder.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("{}: the folder {} cannot be made: {}", option,
                                folder, error.message()));
}

void Outputs::attempt(const std::function<void()> &write) {
  try {
    write();
  } catch (const Error &error) {
    failures_.push_back(error.what());
  }
}

ExitStatus Outputs::conclude(ExitStatus verdict) const {
  std::fflush(stdout);
  for (const std::string &failure : failures_) {
    std::string line = fmt::format("kiln: error: {}\n", failure);
    std::fputs(line.c_str(), stderr);
  }
  bool isMissing = !failures_.empty() && verdict == ExitStatus::ok;
  return isMissing ? ExitStatus::machine : verdict;
}

} // namespace kiln::cli
