// CudaModule: load PTX, keep it, and find its entries.
#include "runtime/CudaModule.h"

#include "support/Error.h"
#include "support/Hash.h"
#include "support/text/PtxText.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

namespace kiln {

using namespace cuda;

namespace {

/// The words of PTX: names, directives with their dot, single punctuation.
class PtxWords {
public:
  explicit PtxWords(std::string_view ptx)
      : text_(blankCommentsAndStrings(ptx)) {}

  /// The next word; empty at the end.
  std::string_view next() {
    at_ = std::min(text_.find_first_not_of(" \t\n\v\f\r", at_), text_.size());
    if (at_ == text_.size())
      return {};
    std::size_t start = at_++;
    if (text_[start] == '.' || isNameCharacter(text_[start]))
      while (at_ < text_.size() && isNameCharacter(text_[at_]))
        ++at_;
    return std::string_view(text_).substr(start, at_ - start);
  }

private:
  std::string text_; ///< without comments and strings
  std::size_t at_ = 0;
};

} // namespace

/// Bytes of a PTX fundamental type; 0 where `word` names none.
static int typeBytes(std::string_view word) {
  static constexpr std::pair<std::string_view, int> kTypes[] = {
      {".b8", 1},         {".u8", 1},    {".s8", 1},     {".b16", 2},
      {".u16", 2},        {".s16", 2},   {".f16", 2},    {".bf16", 2},
      {".b32", 4},        {".u32", 4},   {".s32", 4},    {".f32", 4},
      {".f16x2", 4},      {".b64", 8},   {".u64", 8},    {".s64", 8},
      {".f64", 8},        {".b128", 16}, {".texref", 8}, {".surfref", 8},
      {".samplerref", 8},
  };
  for (auto [name, bytes] : kTypes)
    if (word == name)
      return bytes;
  return 0;
}

/// The parameters between the parentheses after an entry's name; `words` stands
/// behind the opening one.
static std::vector<ScannedParameter> scanParameters(PtxWords &words) {
  std::vector<ScannedParameter> parameters;
  for (std::string_view word = words.next(); !word.empty() && word != ")";
       word = words.next()) {
    if (word == ".param") {
      parameters.emplace_back();
      continue;
    }
    if (parameters.empty())
      continue;
    ScannedParameter &last = parameters.back();
    if (int bytes = typeBytes(word)) {
      last = {std::string(word), bytes};
    } else if (word == "[") {
      std::string_view count = words.next();
      int number = 0;
      std::from_chars(count.data(), count.data() + count.size(), number);
      last.type += fmt::format("[{}]", count);
      last.bytes *= number;
    }
  }
  return parameters;
}

std::vector<ScannedEntry> scanPtxEntries(std::string_view ptx) {
  std::vector<ScannedEntry> entries;
  PtxWords words(ptx);
  std::string current; // whose body this is
  for (std::string_view word = words.next(); !word.empty();
       word = words.next()) {
    if (word == "griddepcontrol" && words.next() == ".wait")
      if (auto found = std::ranges::find(entries, current, &ScannedEntry::name);
          found != entries.end())
        found->isDependent = true;
    if (word != ".entry")
      continue;
    ScannedEntry entry{std::string(words.next()), {}};
    // An entry without parameters may have no parentheses at all.
    if (std::string_view open = words.next(); open == "(")
      entry.parameters = scanParameters(words);
    current = entry.name;
    // A declaration and the definition after it are one entry.
    if (std::ranges::find(entries, entry.name, &ScannedEntry::name) ==
        entries.end())
      entries.push_back(std::move(entry));
  }
  return entries;
}

/// ".version 8.5, .target sm_90a": what decides whether a driver takes the PTX.
static std::string describePtx(std::string_view ptx) {
  std::string described;
  for (std::string_view directive : {".version", ".target"}) {
    std::size_t at = ptx.find(directive);
    if (at == std::string_view::npos)
      continue;
    std::string_view line = ptx.substr(at, ptx.find('\n', at) - at);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' '))
      line.remove_suffix(1);
    described += fmt::format("{}{}", described.empty() ? "" : ", ", line);
  }
  return described.empty() ? "without .version and .target" : described;
}

/// "a, b", for errors that list the entries.
static std::string listEntries(const std::vector<ScannedEntry> &entries) {
  std::vector<std::string_view> names;
  for (const ScannedEntry &entry : entries)
    names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The entry that `name` means, or a UserError.
static const ScannedEntry &chooseEntry(const std::vector<ScannedEntry> &entries,
                                       const std::string &name) {
  if (entries.empty())
    userError("the PTX has no .entry, so there is nothing to launch");
  if (name.empty() && entries.size() == 1)
    return entries.front();
  if (name.empty())
    userError("the PTX has {} entries and the launch names none; name one of: "
              "{}",
              entries.size(), listEntries(entries));
  auto found = std::ranges::find(entries, name, &ScannedEntry::name);
  if (found == entries.end())
    userError("the PTX has no entry '{}'; it has: {}", name,
              listEntries(entries));
  return *found;
}

void CudaEntry::allow(std::uint32_t dynamicSmemBytes,
                      std::uint32_t clusterCtas) {
  constexpr std::uint32_t kPortableClusterCtas = 8;
  std::lock_guard lock(mutex_);
  if (dynamicSmemBytes > allowedSmemBytes_) {
    driver_.call(
        driver_.cuFuncSetAttribute,
        [&] {
          return fmt::format("allowing {} {} bytes of dynamic shared memory",
                             name(), dynamicSmemBytes);
        },
        function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        static_cast<int>(dynamicSmemBytes));
    allowedSmemBytes_ = dynamicSmemBytes;
  }
  if (clusterCtas > kPortableClusterCtas && !isNonPortableAllowed_) {
    driver_.call(
        driver_.cuFuncSetAttribute,
        [&] {
          return fmt::format("allowing {} clusters of {} CTAs", name(),
                             clusterCtas);
        },
        function_, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
    isNonPortableAllowed_ = true;
  }
}

void CudaModules::load(Module &module, std::string_view ptx) {
  std::vector<ScannedEntry> entries = scanPtxEntries(ptx);
  std::string text(ptx); // the driver reads up to a NUL
  std::array<char, 16384> errors{};
  std::array<char, 4096> notes{};
  // Line information lets profilers point at the source that .loc names.
  std::array options = {
      CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
      CU_JIT_GENERATE_LINE_INFO};
  // Numbers are passed as the bits of the pointer, not behind it.
  std::array<void *, options.size()> values = {
      errors.data(), reinterpret_cast<void *>(errors.size() - 1), notes.data(),
      reinterpret_cast<void *>(notes.size() - 1),
      reinterpret_cast<void *>(std::uintptr_t{1})};
  CUresult result = driver_.cuModuleLoadDataEx.function(
      &module.handle, text.c_str(), options.size(), options.data(),
      values.data());
  if (result == CUDA_SUCCESS) {
    module.scanned = std::move(entries);
    return;
  }
  module.handle = nullptr;
  std::string log = std::string(errors.data()) + notes.data();
  driver_.fail(result, driver_.cuModuleLoadDataEx.name,
               fmt::format("compiling {} (PTX {}) with a driver for CUDA {}",
                           entries.empty() ? "PTX" : listEntries(entries),
                           describePtx(ptx), driver_.version()),
               log);
}

CudaEntry &CudaModules::find(std::string_view ptx, const std::string &name) {
  std::string key = hashHex(ptx);
  Module *module;
  {
    std::lock_guard lock(mutex_);
    module = &modules_[std::move(key)];
  }
  // Only those who want the same module wait for its compilation.
  std::lock_guard lock(module->mutex);
  if (!module->handle)
    load(*module, ptx);
  const ScannedEntry &entry = chooseEntry(module->scanned, name);
  if (auto known = module->entries.find(entry.name);
      known != module->entries.end())
    return known->second;
  CUfunction function = nullptr;
  driver_.call(
      driver_.cuModuleGetFunction,
      [&] { return fmt::format("looking up the entry {}", entry.name); },
      &function, module->handle, entry.name.c_str());
  return module->entries
      .emplace(std::piecewise_construct, std::forward_as_tuple(entry.name),
               std::forward_as_tuple(driver_, function, entry))
      .first->second;
}

void CudaModules::unloadAll() noexcept {
  for (auto &[key, module] : modules_)
    if (module.handle)
      driver_.cuModuleUnload.function(module.handle);
  modules_.clear();
}

} // namespace kiln
