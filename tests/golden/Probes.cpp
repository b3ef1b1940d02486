// Probes: the list, and what its parts share.
#include "golden/Probes.h"

#include <set>

namespace kiln::golden {

/// Outputs of so many bytes are kept as they are.
static constexpr std::size_t kKeptBytes = 192;

std::vector<Probe> probes() {
  std::vector<Probe> list;
  addTmaProbes(list);
  addWgmmaProbes(list);
  addMatrixProbes(list);
  addConversionProbes(list);
  addApproximationProbes(list);
  addMbarrierProbes(list);
  addClusterProbes(list);
  addPracticeProbes(list);
  addReleasedProbes(list);
  addSparseProbes(list);
  addTensorCoreProbes(list);
  addRandomProbes(list);
  std::set<std::string> names;
  for (const Probe &probe : list)
    if (!names.insert(probe.group + "." + probe.name).second)
      throw std::logic_error("two probes are named " + probe.name);
  return list;
}

Bytes randomBytes(Type type, std::size_t count, std::uint64_t seed, double lo,
                  double hi) {
  Bytes bytes(count * size_bytes(type));
  fill_random(type, bytes.data(), count, seed, lo, hi);
  return bytes;
}

std::string moduleText(int inputs, int maps, const std::string &body) {
  std::string parameters = ".param .u64 out";
  std::string loads = "ld.param.u64 %out, [out];\n"
                      "cvta.to.global.u64 %out, %out;\n";
  for (int i = 1; i <= inputs; ++i) {
    parameters += fmt::format(", .param .u64 in{}", i);
    loads += fmt::format(".reg .b64 %in{0};\n"
                         "ld.param.u64 %in{0}, [in{0}];\n"
                         "cvta.to.global.u64 %in{0}, %in{0};\n",
                         i);
  }
  for (int i = 0; i < maps; ++i) {
    parameters += fmt::format(", .param .align 64 .b8 map{}[128]", i);
    loads += fmt::format(".reg .b64 %map{0};\n"
                         "mov.b64 %map{0}, map{0};\n"
                         "cvta.param.u64 %map{0}, %map{0};\n",
                         i);
  }
  return ".version 8.4\n.target sm_90a\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 smem[];\n"
         ".visible .entry probe(" +
         parameters + ")\n{\n.reg .b64 %out;\n.reg .b32 %t, %smem;\n" + loads +
         "mov.u32 %t, %tid.x;\nmov.u32 %smem, smem;\n" + body + "ret;\n}\n";
}

Bytes runProbe(Device &device, const Probe &probe, LaunchResult &result) {
  LaunchDescription launch;
  launch.name = "probe";
  launch.ptx = probe.ptx;
  launch.grid = {probe.ctas, 1, 1};
  launch.block = {probe.threads, 1, 1};
  launch.cluster = {probe.cluster, 1, 1};
  launch.dynamic_smem_bytes = probe.smemBytes;
  std::vector<Buffer> buffers = {device.allocate(probe.outputBytes)};
  device.fill(buffers[0], kPoison);
  for (const Bytes &input : probe.inputs) {
    buffers.push_back(device.allocate(input.size()));
    device.copy_in(buffers.back(), input.data(), input.size());
  }
  for (const Buffer &buffer : buffers)
    launch.parameters.push_back({buffer});
  for (ProbeMap map : probe.maps) {
    map.map.address = buffers.at(map.buffer).address();
    launch.parameters.push_back({map.map});
  }
  result = device.launch(launch);
  Bytes output(probe.outputBytes);
  device.copy_out(output.data(), buffers[0], output.size());
  return output;
}

static std::string toHex(const std::uint8_t *bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{:02x}", bytes[i]);
  return text;
}

Bytes fromHex(const std::string &text) {
  Bytes bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::uint8_t>(
        std::stoul(text.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

/// FNV-1a of 64 bits.
static std::string hashOf(const std::uint8_t *bytes, std::size_t count) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < count; ++i)
    hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return fmt::format("#{:016x}", hash);
}

std::vector<std::string> summary(const Probe &probe, const Bytes &output) {
  if (probe.near || output.size() <= kKeptBytes)
    return {toHex(output.data(), output.size())};
  std::size_t row = probe.rowBytes ? probe.rowBytes : output.size();
  std::vector<std::string> hashes;
  for (std::size_t at = 0; at < output.size(); at += row)
    hashes.push_back(
        hashOf(output.data() + at, std::min(row, output.size() - at)));
  return hashes;
}

} // namespace kiln::golden
