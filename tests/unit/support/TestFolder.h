// TestFolder: a folder that is gone when the test is.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

namespace kiln {

class TestFolder {
public:
  TestFolder() {
    std::string name = ::testing::TempDir() + "kiln-test-XXXXXX";
    if (!::mkdtemp(name.data()))
      ADD_FAILURE() << "no temporary folder: " << name;
    path_ = name;
  }
  TestFolder(const TestFolder &) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path &path() const { return path_; }

private:
  std::filesystem::path path_;
};

inline std::string readWhole(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void writeWhole(const std::filesystem::path &path,
                       const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

} // namespace kiln
