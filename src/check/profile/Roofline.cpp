// Roofline: what a device can do at most with so many operations for a byte, and
// where kernels stand under that.
//
// A kernel is a line from its intensity by requested bytes (every sector of
// every request comes from memory) to that by compulsory ones (each sector
// comes once): with its caches a GPU is in between. It is drawn where the roof is,
// because the simulator has no time.
#include "check/profile/Rows.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace kiln {

namespace {
struct Roof {
  std::string name;
  double tflops;
};
/// From intensities and TFLOP/s, both logarithmic, to points of the picture.
struct RooflineAxes {
  static constexpr double kLeft = 70, kRight = 700, kTop = 30, kBottom = 400;
  double least, most, low, high;

  double x(double intensity) const {
    return kLeft + (kRight - kLeft) * std::log(intensity / least) /
                       std::log(most / least);
  }
  double y(double tflops) const {
    return kBottom -
           (kBottom - kTop) * std::log(tflops / low) / std::log(high / low);
  }
};
} // namespace

static bool usesAny(const Profile &profile,
                    std::initializer_list<const char *> words) {
  for (const auto &[shape, count] : profile.tensor())
    for (const char *word : words)
      if (shape.find(word) != std::string::npos)
        return true;
  return false;
}

/// Of the units that the profiles use. Tensor cores of every published chip do
/// tf32 at half the rate of f16 and floats of 8 bits at twice that; of other
/// types the table of devices says nothing.
static std::vector<Roof> roofsOf(std::span<const Profile> profiles) {
  std::vector<Roof> roofs;
  const DeviceDescription &device = profiles.front().device;
  auto uses = [&](std::initializer_list<const char *> words) {
    return std::any_of(
        profiles.begin(), profiles.end(),
        [&](const Profile &profile) { return usesAny(profile, words); });
  };
  double f32 = 1e-6 * device.f32_flops_per_clock * device.sms *
               device.sm_clock_mhz;
  bool hasVector = std::any_of(
      profiles.begin(), profiles.end(), [](const Profile &profile) {
        ProfileCounts c = profile.total();
        return c[Count::operations] > c[Count::tensor_operations];
      });
  double f16 = device.f16_tflops;
  if (f16 > 0 && uses({"e4m3", "e5m2", "f8f6f4"}))
    roofs.push_back({"tensor cores, 8 bits", 2 * f16});
  if (f16 > 0 && uses({".f16", "kind::f16", "bf16"}))
    roofs.push_back({"tensor cores, f16 and bf16", f16});
  if (f16 > 0 && uses({"tf32"}))
    roofs.push_back({"tensor cores, tf32", f16 / 2});
  if (f32 > 0 && (hasVector || roofs.empty()))
    roofs.push_back({"f32", f32});
  return roofs;
}

static std::string svgText(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '&'   ? "&amp;"
              : c == '<' ? "&lt;"
              : c == '>' ? "&gt;"
              : c == '"' ? "&quot;"
                         : std::string(1, c);
  return result;
}

static std::string svgLine(double x1, double y1, double x2, double y2,
                           const char *style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
                     "y2=\"{:.1f}\" {}/>\n",
                     x1, y1, x2, y2, style);
}

static std::string svgLabel(double x, double y, const char *anchor,
                            const std::string &text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}"
                     "</text>\n",
                     x, y, anchor, svgText(text));
}

static std::string gridLines(const RooflineAxes &axes) {
  constexpr const char *kGrid = "stroke=\"#888\" stroke-opacity=\"0.25\"";
  std::string text;
  for (double at = axes.least; at <= axes.most * 1.01; at *= 10) {
    text += svgLine(axes.x(at), axes.kTop, axes.x(at), axes.kBottom, kGrid);
    text += svgLabel(axes.x(at), axes.kBottom + 18, "middle",
                     fmt::format("{:g}", at));
  }
  for (double at = axes.low; at <= axes.high * 1.01; at *= 10) {
    text += svgLine(axes.kLeft, axes.y(at), axes.kRight, axes.y(at), kGrid);
    text += svgLabel(axes.kLeft - 8, axes.y(at) + 4, "end",
                     fmt::format("{:g}", at));
  }
  text += svgLabel((axes.kLeft + axes.kRight) / 2, axes.kBottom + 40, "middle",
                   "FLOP for each byte of global memory");
  return text + svgLabel(axes.kLeft, axes.kTop - 10, "middle", "TFLOP/s");
}

/// A kernel's two intensities, on the roof.
static std::string kernelMark(const RooflineAxes &axes, const Profile &profile,
                              double bandwidth, double roof, double labelY) {
  double operations = double(profile.operations());
  auto at = [&](std::uint64_t bytes) {
    double intensity = bytes ? operations / double(bytes) : axes.most;
    return std::clamp(intensity, axes.least, axes.most);
  };
  double few = at(profile.traffic.requested());
  double many = at(profile.traffic.compulsory());
  auto roofAt = [&](double intensity) {
    return std::clamp(std::min(roof, intensity * bandwidth), axes.low,
                      axes.high);
  };
  std::string text = "<g fill=\"#c33\" stroke=\"#c33\">\n<title>";
  text += svgText(fmt::format(
      "{}: {:.1f} FLOP for a requested byte, {:.1f} for a compulsory one",
      profile.kernel, few, many));
  text += "</title>\n" + svgLine(axes.x(few), axes.y(roofAt(few)), axes.x(many),
                                 axes.y(roofAt(many)), "stroke-width=\"3\"");
  for (double intensity : {few, many})
    text += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"/>\n",
                        axes.x(intensity), axes.y(roofAt(intensity)));
  text += "</g>\n";
  return text + svgLabel(axes.kRight, labelY, "end",
                         fmt::format("{}: {:.3g} to {:.3g}", profile.kernel,
                                     few, many));
}

std::string to_roofline(std::span<const Profile> profiles) {
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 730 460\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#777\">\n";
  std::vector<Roof> roofs;
  if (!profiles.empty())
    roofs = roofsOf(profiles);
  double bandwidth =
      profiles.empty() ? 0 : profiles.front().device.memory_gb_per_s * 1e-3;
  if (roofs.empty() || bandwidth <= 0)
    return text + svgLabel(365, 230, "middle",
                           "the peaks of the device are not known") +
           "</svg>\n";
  RooflineAxes axes{0.01, 10000, 0.01, 10000};
  text += svgLabel(365, 16, "middle", profiles.front().device.name);
  text += gridLines(axes);
  double top = 0;
  for (const Roof &roof : roofs) {
    top = std::max(top, roof.tflops);
    double ridge = roof.tflops / bandwidth;
    text += svgLine(axes.x(ridge), axes.y(roof.tflops), axes.kRight,
                    axes.y(roof.tflops), "stroke=\"#36c\" stroke-width=\"2\"");
    text += svgLabel(axes.kRight, axes.y(roof.tflops) - 5, "end",
                     fmt::format("{}: {:.4g} TFLOP/s", roof.name, roof.tflops));
  }
  double ridge = top / bandwidth;
  text += svgLine(axes.x(axes.low / bandwidth < axes.least
                             ? axes.least
                             : axes.low / bandwidth),
                  axes.y(std::max(axes.low, axes.least * bandwidth)),
                  axes.x(ridge), axes.y(top),
                  "stroke=\"#36c\" stroke-width=\"2\"");
  constexpr double kBesideRoof = 0.3; // an intensity
  text += svgLabel(axes.x(kBesideRoof) + 14,
                   axes.y(kBesideRoof * bandwidth) + 12, "start",
                   fmt::format("memory: {:g} GB/s", bandwidth * 1e3));
  double labelY = axes.kBottom - 8;
  for (const Profile &profile : profiles) {
    if (!profile.operations())
      continue;
    // What is not on a tensor core is under the lowest roof.
    ProfileCounts c = profile.total();
    bool isTensor = 2 * c[Count::tensor_operations] > c[Count::operations];
    double roof = isTensor ? roofs.front().tflops : roofs.back().tflops;
    text += kernelMark(axes, profile, bandwidth, roof, labelY);
    labelY -= 16;
  }
  return text + "</svg>\n";
}

} // namespace kiln
