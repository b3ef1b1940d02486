// bench_chart: bars as SVG.
#include "bench_chart.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln::cli {

namespace {

constexpr int kBarHeight = 16, kGap = 10, kTop = 44;
constexpr int kLabelWidth = 290, kPlotWidth = 480, kNumberWidth = 56;
constexpr int kWidth = kLabelWidth + kPlotWidth + kNumberWidth;
/// What the scale shows: beyond it a bar is cut off, and its number says more.
constexpr double kLeast = 0.5, kMost = 2;

/// Where a ratio lies; equal factors are equal distances.
double place(double ratio) {
  double share = std::log(std::clamp(ratio, kLeast, kMost) / kLeast) /
                 std::log(kMost / kLeast);
  return kLabelWidth + share * kPlotWidth;
}

class Chart {
public:
  void title(const std::string &text) { title_ = text; }
  void heading(const std::string &text) {
    bottom_ += kGap;
    add_text(8, bottom_ + 12, "start", text, "bold");
    bottom_ += kBarHeight + 2;
  }
  void bar(const std::string &label, double ratio) {
    double from = std::min(place(1), place(ratio));
    double to = std::max(place(1), place(ratio));
    add_text(kLabelWidth - 6, bottom_ + 12, "end", label);
    body_ += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
                         "height=\"{}\" fill=\"{}\"/>\n",
                         from, bottom_ + 2, std::max(to - from, 1.0),
                         kBarHeight - 4, ratio >= 1 ? "#3a7d44" : "#b5502f");
    add_text(kWidth - 6, bottom_ + 12, "end", fmt::format("{:.3f}", ratio));
    bottom_ += kBarHeight;
  }
  std::string finish() const {
    int height = bottom_ + 12;
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" "
        "height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
        "font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"white\"/>\n<text x=\"8\" y=\"16\" font-size=\"13\">{2}"
        "</text>\n",
        kWidth, height, title_);
    for (double at : {0.5, 0.75, 1.0, 1.25, 1.5, 2.0})
      text += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" "
          "stroke=\"{3}\"/>\n<text x=\"{0:.1f}\" y=\"{4}\" "
          "text-anchor=\"middle\">{5}</text>\n",
          place(at), kTop - 4, height - 8, at == 1 ? "#222" : "#ddd", kTop - 8,
          at);
    return text + body_ + "</svg>\n";
  }

private:
  void add_text(int x, int y, const char *anchor, const std::string &text,
                const char *weight = "normal") {
    body_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\" "
                         "font-weight=\"{}\">{}</text>\n",
                         x, y, anchor, weight, text);
  }

  std::string title_, body_;
  int bottom_ = kTop;
};

/// "4096x4096x4096 bf16 &gt; bf16 tn"
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('>', at)) != std::string::npos;)
    text.replace(at, 1, "&gt;");
  return text;
}

} // namespace

std::string ratio_chart(const BenchReport &report) {
  Chart chart;
  chart.title(escaped(
      fmt::format("times as fast as the best of {} {}, rested, {}",
                  report.library, report.library_version, report.machine)));
  for (const SuiteMean &suite : report.means()) {
    chart.heading(fmt::format("{} (mean {:.3f})",
                              suite.name.empty() ? "problems" : suite.name,
                              suite.rested));
    for (const ProblemResult &result : report.results)
      if (result.suite == suite.name && result.contenders.size() > 1)
        chart.bar(escaped(result.problem), result.rested_ratio());
  }
  return chart.finish();
}

} // namespace kiln::cli
