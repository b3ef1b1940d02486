// LanguagePage: docs/language.md holds: every kernel on it is built or refused
// as it says, and its table of atoms names instructions that come out.
#include "language_kernels.h"

#include <gtest/gtest.h>

#include <fstream>
#include <regex>

static const std::string kPage = "docs/language.md";

static std::string place(const PageKernel &kernel) {
  return kPage + ":" + std::to_string(kernel.first_line);
}

namespace {
struct Built {
  std::string place;
  Kernel kernel;
};
} // namespace

/// The kernels that are not there to be refused; one that cannot be built is a
/// failure of the test.
static std::vector<Built> built() {
  std::vector<Built> kernels;
  for (const PageKernel &kernel : kPageKernels)
    try {
      if (kernel.message.empty())
        kernels.push_back({place(kernel), kernel.build()});
    } catch (const Error &error) {
      ADD_FAILURE() << place(kernel) << " is refused: " << error.what();
    }
  return kernels;
}

TEST(LanguagePage, KernelsAreBuilt) {
  std::vector<Built> kernels = built();
  EXPECT_GE(kernels.size(), 20u);
  if (!find_ptxas())
    GTEST_SKIP() << "they are not assembled: there is no ptxas here";
  for (const auto &[place, kernel] : kernels)
    EXPECT_EQ(assemble(kernel.ptx, kernel.name, {.target = kernel.target})
                  .resources.spill_store_bytes,
              0)
        << place;
}

/// Launched with 256 for each scalar and buffers of ones.
static LaunchResult launched(Device &device, const Kernel &kernel) {
  std::vector<LaunchArgument> arguments;
  for (const ArgumentSpec &spec : kernel.contract.arguments) {
    if (spec.is_workspace) // the device's
      break;
    if (spec.kind == ArgumentSpec::Kind::scalar) {
      arguments.push_back(Scalar(spec.type, to_bits(spec.type, 256)));
      continue;
    }
    std::int64_t count = 1;
    for (const Dim &dim : spec.shape)
      count *= dim.evaluate([](const std::string &) { return 256; });
    std::vector<std::uint8_t> ones;
    std::uint64_t bits = to_bits(spec.type, 1);
    for (std::int64_t i = 0; i < count; ++i)
      for (int byte = 0; byte < size_bytes(spec.type); ++byte)
        ones.push_back(bits >> (8 * byte) & 0xFF);
    Buffer buffer = device.allocate(ones.size());
    device.copy_in(buffer, ones.data(), ones.size());
    arguments.push_back(buffer);
  }
  return device.launch(kernel, arguments);
}

TEST(LanguagePage, KernelsRunWithoutAFinding) {
  std::vector<Built> kernels = built();
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    SimOptions options{.interleaving = order};
    options.print = [](const std::string &) {};
    auto hopper = open_sim(options);
    options.device = DeviceDescription::b200();
    auto blackwell = open_sim(options);
    for (const auto &[place, kernel] : kernels) {
      bool is_hopper = kernel.target == DeviceDescription::h200().target();
      LaunchResult result = launched(is_hopper ? *hopper : *blackwell, kernel);
      EXPECT_TRUE(result.findings.empty())
          << place << ": " << result.to_string();
    }
  }
}

TEST(LanguagePage, RefusalsAreWordForWord) {
  int refused = 0;
  for (const PageKernel &kernel : kPageKernels) {
    if (kernel.message.empty())
      continue;
    SCOPED_TRACE(place(kernel));
    ++refused;
    try {
      kernel.build();
      ADD_FAILURE() << "nothing was refused";
    } catch (const UserError &error) {
      EXPECT_EQ(error.message(), kernel.message);
      EXPECT_EQ(error.where().file, kPage);
      EXPECT_GE(error.where().line, kernel.first_line);
      EXPECT_LE(error.where().line, kernel.last_line);
    }
  }
  EXPECT_GE(refused, 2);
}

/// The last table: what stands in backticks in its second column, by line.
static std::vector<std::pair<int, std::string>> instructions() {
  std::ifstream file(KILN_SOURCE_DIR "/" + kPage);
  std::vector<std::pair<int, std::string>> found;
  bool is_table = false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("## "))
      is_table = line == "## Atoms and their PTX";
    std::size_t bar = line.find("` | `");
    if (!is_table || bar == std::string::npos)
      continue;
    std::string column = line.substr(bar + 4);
    std::regex quoted("`([^`]+)`");
    for (std::sregex_iterator it(column.begin(), column.end(), quoted), end;
         it != end; ++it)
      found.emplace_back(number, (*it)[1]);
  }
  return found;
}

TEST(LanguagePage, AtomsBecomeTheirInstructions) {
  std::string ptx;
  for (const auto &[place, kernel] : built())
    ptx += std::regex_replace(kernel.ptx, std::regex("\\s+"), " ");
  auto rows = instructions();
  EXPECT_GE(rows.size(), 50u);
  for (const auto &[line, instruction] : rows)
    EXPECT_NE(ptx.find(instruction), std::string::npos)
        << kPage << ":" << line << ": no kernel of the page has "
        << instruction;
}
