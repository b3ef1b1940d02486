// CudaDescription: the GPUs of this machine, and what the driver says of them.
#include "runtime/CudaDriver.h"

#include "kiln/run/device.h"

#include "isa/Target.h"
#include "support/Error.h"

namespace kiln {

using namespace cuda;

DeviceDescription describeCudaDevice(const CudaDriver &driver,
                                     CUdevice device) {
  auto read = [&](CUdevice_attribute attribute) {
    int value = 0;
    driver.call(
        driver.cuDeviceGetAttribute,
        [&] {
          return fmt::format("reading attribute {} of the GPU",
                             static_cast<int>(attribute));
        },
        &value, attribute, device);
    return value;
  };
  char text[256] = {};
  driver.call(driver.cuDeviceGetName, "reading the GPU's name", text,
              static_cast<int>(sizeof(text)) - 1, device);
  std::size_t memoryBytes = 0;
  driver.call(driver.cuDeviceTotalMem, "reading the GPU's memory size",
              &memoryBytes, device);

  // The driver does not say what its tensor cores are.
  DeviceDescription description = isa::describeArchitecture(
      read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
      read(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  description.name = text;
  description.memory_bytes = static_cast<long long>(memoryBytes);
  description.sms = read(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  description.max_threads_per_cta =
      read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  description.max_threads_per_sm =
      read(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  description.max_ctas_per_sm =
      read(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  if (!read(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH))
    description.max_cluster_ctas = description.max_nonportable_cluster_ctas = 1;
  description.registers_per_sm =
      read(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
  description.smem_per_sm_bytes =
      read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  description.max_smem_per_cta_bytes =
      read(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  description.reserved_smem_per_cta_bytes =
      read(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  description.l2_bytes = read(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  description.sm_clock_mhz = read(CU_DEVICE_ATTRIBUTE_CLOCK_RATE) / 1000;
  description.memory_clock_mhz =
      read(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE) / 1000;
  // Two transfers a clock, over the width of the bus.
  description.memory_gb_per_s =
      2e-3 * description.memory_clock_mhz *
      read(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH) / 8;
  return description;
}

std::vector<int> askActiveClusters(const CudaDriver &driver,
                                   const DeviceDescription &description) {
  // A multiprocessor has room for one CTA with so much shared memory.
  auto smemBytes = static_cast<unsigned>(description.max_smem_per_cta_bytes);
  constexpr const char *kPtx = ".version 7.8\n.target sm_90\n"
                               ".address_size 64\n"
                               ".visible .entry nothing()\n{\n  ret;\n}\n";
  std::vector<int> clusters = {description.sms};
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  if (description.max_cluster_ctas == 1 ||
      driver.cuModuleLoadDataEx.function(&module, kPtx, 0, nullptr, nullptr) !=
          CUDA_SUCCESS)
    return {};
  bool isKnown = driver.cuModuleGetFunction.function(
                     &function, module, "nothing") == CUDA_SUCCESS &&
                 driver.cuFuncSetAttribute.function(
                     function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     description.max_smem_per_cta_bytes) == CUDA_SUCCESS;
  for (int ctas = 2; isKnown && ctas <= description.max_cluster_ctas; ++ctas) {
    CUlaunchAttribute cluster{};
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {static_cast<unsigned>(ctas), 1, 1};
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(ctas * description.sms);
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 128;
    config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = smemBytes;
    config.attrs = &cluster;
    config.numAttrs = 1;
    int count = 0;
    isKnown = driver.cuOccupancyMaxActiveClusters.function(
                  &count, function, &config) == CUDA_SUCCESS &&
              count > 0;
    clusters.push_back(count);
  }
  driver.cuModuleUnload.function(module);
  return isKnown ? clusters : std::vector<int>();
}

int countCudaDevices(const CudaDriver &driver) {
  int count = 0;
  driver.call(driver.cuDeviceGetCount, "counting the GPUs", &count);
  return count;
}

CUdevice getCudaDevice(const CudaDriver &driver, int ordinal) {
  CUdevice device = 0;
  driver.call(
      driver.cuDeviceGet,
      [&] { return fmt::format("opening cuda:{}", ordinal); }, &device,
      ordinal);
  return device;
}

DeviceListing listCudaDevices(const CudaDriver &driver) {
  DeviceListing listing;
  int count = countCudaDevices(driver);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    DeviceDescription description =
        describeCudaDevice(driver, getCudaDevice(driver, ordinal));
    std::string name = description.name;
    listing.devices.push_back({fmt::format("cuda:{}", ordinal), std::move(name),
                               std::move(description)});
  }
  if (count == 0)
    listing.missing.emplace_back("cuda: the driver finds no GPU");
  return listing;
}

DeviceListing list_devices() {
  try {
    return listCudaDevices(*CudaDriver::ofProcess());
  } catch (const RuntimeError &error) {
    DeviceListing listing;
    listing.missing.push_back("cuda: " + error.message());
    return listing;
  }
}

} // namespace kiln
