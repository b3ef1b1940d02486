// GemmPage: the tables of docs/gemm.md hold: what is refused, in which words,
// and how the matrices of a problem travel.
#include <kiln/kiln.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

using namespace kiln;

namespace {
struct Row {
  int line;
  std::vector<std::string> cells; ///< without the backticks around them
};
} // namespace

/// The cells of "| `a` | b |".
static std::vector<std::string> cells_of(const std::string &line) {
  std::vector<std::string> cells;
  std::size_t begin = 1;
  for (std::size_t bar; (bar = line.find('|', begin)) != std::string::npos;
       begin = bar + 1) {
    std::string cell = line.substr(begin, bar - begin);
    cell.erase(0, cell.find_first_not_of(" `"));
    cell.erase(cell.find_last_not_of(" `") + 1);
    cells.push_back(cell);
  }
  return cells;
}

/// The rows under a heading that begin with words in backticks.
static std::vector<Row> rows_under(const std::string &heading) {
  std::ifstream file(KILN_SOURCE_DIR "/docs/gemm.md");
  std::vector<Row> rows;
  bool is_there = false;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.starts_with("## "))
      is_there = line == "## " + heading;
    if (is_there && line.starts_with("| `"))
      rows.push_back({number, cells_of(line)});
  }
  return rows;
}

static void expect_refusals(const std::vector<Row> &rows,
                            const DeviceDescription &device) {
  for (const Row &row : rows) {
    SCOPED_TRACE("docs/gemm.md:" + std::to_string(row.line));
    ASSERT_EQ(row.cells.size(), 3u);
    std::string found = "nothing";
    try {
      fit(GemmProblem::parse(row.cells[0]), GemmSchedule::parse(row.cells[1]),
          device);
    } catch (const UserError &error) {
      found = error.what();
    }
    EXPECT_EQ(found, row.cells[2]);
  }
}

TEST(GemmPage, RefusalsAreWordForWord) {
  std::vector<Row> rows = rows_under("Refused");
  EXPECT_GE(rows.size(), 30u);
  expect_refusals(rows, DeviceDescription::h200());
}

TEST(GemmPage, RefusalsOfBlackwellAreWordForWord) {
  std::vector<Row> rows = rows_under("Refused on Blackwell");
  EXPECT_GE(rows.size(), 15u);
  expect_refusals(rows, DeviceDescription::b200());
}

TEST(GemmPage, RefusalsOfAmpereAreWordForWord) {
  std::vector<Row> rows = rows_under("Refused on sm_80");
  EXPECT_GE(rows.size(), 15u);
  expect_refusals(rows, DeviceDescription::for_target("sm_80"));
}

TEST(GemmPage, IntegersNeedATargetThatHasThem) {
  expect_refusals({{.line = 0,
                    .cells = {"1024x1024x1024 i8", "",
                              "sm_103a does not multiply i8; use --target "
                              "sm_100a"}}},
                  DeviceDescription::for_target("sm_103a"));
}

/// Whether the argument of that name becomes a tensor map of the kernel.
static bool is_by_tma(const LaunchContract &contract, const std::string &name) {
  return std::any_of(contract.parameters.begin(), contract.parameters.end(),
                     [&](const ParameterSpec &parameter) {
                       return contract.arguments[parameter.argument].name ==
                                  name &&
                              parameter.kind == ParameterSpec::Kind::tensor_map;
                     });
}

TEST(GemmPage, MatricesTravelAsItSays) {
  std::vector<Row> rows = rows_under("How A, B and D travel");
  EXPECT_GE(rows.size(), 10u);
  for (const Row &row : rows) {
    SCOPED_TRACE("docs/gemm.md:" + std::to_string(row.line));
    ASSERT_EQ(row.cells.size(), 3u);
    GemmProblem problem = GemmProblem::parse(row.cells[0]);
    for (const GemmSchedule &schedule :
         {GemmSchedule{.kind = GemmKind::cooperative},
          GemmSchedule{.kind = GemmKind::multistage}}) {
      Module module = build_gemm(problem, schedule);
      const LaunchContract &contract = module.contract();
      auto who = [&](const char *operand) -> std::string {
        return is_by_tma(contract, operand) ? "TMA" : "threads";
      };
      std::string both = who("a");
      if (who("b") != both)
        both += ", " + who("b");
      EXPECT_EQ(both, row.cells[1]);
      EXPECT_EQ(is_by_tma(contract, "d") ? "TMA" : "threads", row.cells[2]);
    }
  }
}
