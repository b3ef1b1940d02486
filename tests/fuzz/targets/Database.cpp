// database: a file that claims to be a tuning database, read and written.
#include "fuzz/Target.h"
#include "kiln/base/error.h"
#include "kiln/kernels/tuning.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace kiln::fuzz {

namespace fs = std::filesystem;

/// A folder of this process, as SQLite puts files beside a database.
static fs::path scratchFolder() {
  struct Folder {
    fs::path path =
        fs::temp_directory_path() / ("kiln-fuzz-" + std::to_string(::getpid()));
    Folder() { fs::create_directories(path); }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static Folder folder;
  for (const auto &entry : fs::directory_iterator(folder.path))
    fs::remove_all(entry);
  return folder.path;
}

void runDatabase(std::string_view input) {
  std::string path = (scratchFolder() / "tune.db").string();
  std::ofstream(path, std::ios::binary) << input;
  constexpr std::chrono::milliseconds kPatience(10);
  try {
    TuningDatabase database(path, TuningDatabase::Access::read, kPatience);
    database.find("NVIDIA H200", "gemm", "64x64x64 f16 -> f32 tn");
    database.entries();
  } catch (const Error &error) {
    checkMessage(error.what());
  }
  TuningDatabase database(path, TuningDatabase::Access::write, kPatience);
  std::vector<TunedSchedule> entries = database.entries();
  database.merge(entries);
}

} // namespace kiln::fuzz
