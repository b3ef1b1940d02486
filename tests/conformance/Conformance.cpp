// Conformance: devices, compilation and data of the cases.
#include "Conformance.h"

#include "AllOrders.h"

#include <kiln/measure/reference.h>
#include <kiln/run/open_device.h>

#include <cstring>
#include <map>

namespace conformance {

std::vector<std::string> devices() { return {"cuda", "sim"}; }

const OpenedDevice &open(const std::string &id) {
  static std::map<std::string, OpenedDevice> opened;
  auto found = opened.find(id);
  if (found != opened.end())
    return found->second;
  OpenedDevice result;
  try {
    result.device = id == "sim" ? open_all_orders() : open_device(id);
  } catch (const Error &error) {
    result.reason = error.what();
  }
  return opened[id] = result;
}

Kernel compile_checked(const Module &module) {
  Kernel kernel = compile(module, {.use_cache = false});
  EXPECT_EQ(count(kernel.ptx, ".entry " + kernel.name), 1);
  // print passes its values through local memory; nothing else may.
  bool has_print = count(kernel.ptx, "vprintf") > 0;
  EXPECT_TRUE(has_print || count(kernel.ptx, ".local") == 0)
      << "a variable of " << kernel.name << " is in memory";
  if (!find_ptxas())
    return kernel;
  Assembly assembly = assemble(kernel.ptx, kernel.name,
                               {.target = kernel.target, .use_cache = false});
  EXPECT_EQ(assembly.resources.spill_store_bytes, 0);
  EXPECT_EQ(assembly.resources.spill_load_bytes, 0);
  return kernel;
}

int count(const std::string &where, const std::string &text) {
  int times = 0;
  for (std::size_t at = where.find(text); at != std::string::npos;
       at = where.find(text, at + text.size()))
    ++times;
  return times;
}

std::vector<std::uint8_t> elements(Type type,
                                   const std::vector<double> &values) {
  std::size_t size = size_bytes(type);
  std::vector<std::uint8_t> bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint64_t bits = to_bits(type, values[i]);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

std::vector<double> values(Type type, const std::vector<std::uint8_t> &bytes) {
  std::size_t size = size_bytes(type);
  std::vector<double> result(bytes.size() / size);
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    result[i] = from_bits(type, bits);
  }
  return result;
}

std::vector<std::uint8_t> random_elements(Type type, std::size_t count,
                                          unsigned seed) {
  std::vector<std::uint8_t> bytes(count * size_bytes(type));
  fill_random(type, bytes.data(), count, seed);
  return bytes;
}

} // namespace conformance
