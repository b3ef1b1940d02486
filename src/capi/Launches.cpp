// Launches: modules and their launches of the C interface.
#include "capi/Handles.h"
#include "cudart/Fatbin.h"
#include "kiln/check/sim.h"
#include "kiln/language/memory/tensor_map_bytes.h"
#include "support/Error.h"

#include <algorithm>
#include <cstddef>
#include <fmt/ranges.h>

using namespace kiln;
using namespace kiln::capi;

std::unique_ptr<kiln_module>
kiln::capi::loadModule(kiln_device &device, std::vector<std::string> texts) {
  std::vector<std::string_view> views(texts.begin(), texts.end());
  std::shared_ptr<LoadedModule> loaded = device.device->load(views);
  std::vector<std::string> entries = loaded->entries();
  return std::unique_ptr<kiln_module>(
      new kiln_module{device.device, std::move(loaded), std::move(entries),
                      std::move(texts)});
}

kiln_error *kiln_module_load(kiln_device *device, const char *const *ptx,
                             size_t count, kiln_module **module) {
  return attempt([&] {
    require(device, "device");
    require(ptx, "ptx");
    require(module, "module");
    if (count == 0)
      userError("a module is made of at least one text of PTX, not of 0");
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      require(ptx[i], "a text of ptx");
      texts.emplace_back(ptx[i]);
    }
    *module = loadModule(*device, std::move(texts)).release();
  });
}

/// A whole fat binary, which ends where its header says.
static std::vector<std::string> textsOf(const std::string &image,
                                        const Device &device) {
  std::uint64_t wanted = cudart::imageBytes(image.data(), image.size());
  if (wanted > image.size())
    userError("the image says that it has {} bytes, and {} are there", wanted,
              image.size());
  cudart::FatbinText found =
      cudart::readImage(image.data(), device.description());
  if (found.ptx.empty())
    userError("{}", found.missing);
  return found.ptx;
}

kiln_error *kiln_module_load_image(kiln_device *device, const void *image,
                                   size_t bytes, kiln_module **module) {
  return attempt([&] {
    require(device, "device");
    require(image, "image");
    require(module, "module");
    // With a NUL behind it, where a text ends.
    std::string copy(static_cast<const char *>(image), bytes);
    *module = loadModule(*device, textsOf(copy, *device->device)).release();
  });
}
size_t kiln_module_entry_count(const kiln_module *module) {
  return module ? module->entries.size() : 0;
}
const char *kiln_module_entry_name(const kiln_module *module, size_t index) {
  return index < kiln_module_entry_count(module)
             ? module->entries[index].c_str()
             : nullptr;
}
kiln_error *kiln_module_parameters(const kiln_module *module, const char *entry,
                                   size_t *count, uint32_t *bytes,
                                   size_t capacity) {
  return attempt([&] {
    require(module, "module");
    require(entry, "entry");
    require(count, "count");
    const auto &sizes = module->module->entry(entry).parameter_bytes;
    *count = sizes.size();
    for (size_t i = 0; bytes && i < sizes.size() && i < capacity; ++i)
      bytes[i] = sizes[i];
  });
}
/// What the texts say of an entry; null where they do not tell.
static const PtxEntry *outlineOf(const kiln_module &module,
                                 std::string_view entry) {
  std::call_once(module.isOutlined, [&] {
    for (const std::string &text : module.texts)
      try {
        for (PtxEntry &found : outline(text))
          module.outlines.push_back(std::move(found));
      } catch (const UserError &) {
        // The sizes are known all the same.
      }
  });
  for (const PtxEntry &found : module.outlines)
    if (found.name == entry)
      return &found;
  return nullptr;
}

static const char *kindOf(const PtxParameter &parameter) {
  if (parameter.is_struct || parameter.fields.empty())
    return "struct";
  switch (parameter.fields[0].kind) {
  case PtxField::Kind::pointer:
    return "pointer";
  case PtxField::Kind::tensor_map:
    return "tensor_map";
  case PtxField::Kind::number:
    return "number";
  }
  internalError("a parameter has no kind");
}

kiln_error *kiln_module_parameter(const kiln_module *module, const char *entry,
                                  size_t index, kiln_parameter *parameter) {
  return attempt([&] {
    require(module, "module");
    require(entry, "entry");
    require(parameter, "parameter");
    const auto &sizes = module->module->entry(entry).parameter_bytes;
    if (index >= sizes.size())
      userError("there is no parameter {}; {} has {}", index, entry,
                sizes.size());
    kiln_parameter known = {.name = "", .kind = "struct", .type = ""};
    known.size = sizes[index];
    const PtxEntry *text = outlineOf(*module, entry);
    if (text && index < text->parameters.size()) {
      const PtxParameter &told = text->parameters[index];
      known.name = told.name.c_str();
      known.kind = kindOf(told);
      // Names of types are texts that end in zeros.
      if (!told.is_struct && !told.fields.empty() &&
          !told.fields[0].is_type_guessed)
        known.type = name(told.fields[0].type).data();
    }
    writeStructure(known, *parameter, sizeof(kiln_parameter), "parameter");
  });
}

kiln_error *kiln_module_variable(const kiln_module *module, const char *name,
                                 uint64_t *address, size_t *bytes) {
  return attempt([&] {
    require(module, "module");
    require(name, "name");
    Buffer variable = module->module->variable(name);
    if (address)
      *address = variable.address();
    if (bytes)
      *bytes = variable.bytes();
  });
}
kiln_error *kiln_module_registers(const kiln_module *module, const char *entry,
                                  int *count) {
  return attempt([&] {
    require(module, "module");
    require(entry, "entry");
    require(count, "count");
    *count = module->module->registers(entry);
  });
}
void kiln_module_free(kiln_module *module) { delete module; }

/// Of the first version.
static constexpr std::size_t kFirstLaunchBytes =
    offsetof(kiln_launch, parameters) + sizeof(void *);

/// A shape; sizes that nobody set count as 1.
static std::array<std::uint32_t, 3> shapeOf(const uint32_t (&size)[3]) {
  return {std::max(size[0], 1u), std::max(size[1], 1u), std::max(size[2], 1u)};
}

static LaunchDescription describe(const kiln_launch &given) {
  kiln_launch launch =
      readStructure(given, kFirstLaunchBytes, "launch");
  require(launch.module, "launch->module");
  LaunchDescription description;
  description.module = launch.module->module;
  description.name = launch.entry ? launch.entry : "";
  description.grid = shapeOf(launch.grid);
  description.block = shapeOf(launch.block);
  description.cluster = shapeOf(launch.cluster);
  description.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  description.cooperative = launch.is_cooperative != 0;
  description.dependent = launch.is_dependent != 0;
  const EntryInfo &entry = launch.module->module->entry(description.name);
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    require(launch.parameters, "launch->parameters");
    require(launch.parameters[i], "a parameter of the launch");
    const auto *from = static_cast<const std::byte *>(launch.parameters[i]);
    description.parameters.push_back(
        {std::vector<std::byte>(from, from + entry.parameter_bytes[i])});
  }
  return description;
}

kiln_error *kiln_device_launch(kiln_device *device, const kiln_launch *launch,
                               kiln_result **result) {
  return kiln_explore(device, &launch, 1, nullptr, result);
}

kiln_error *kiln_explore(kiln_device *device,
                         const kiln_launch *const *launches, size_t count,
                         const kiln_options *options, kiln_result **result) {
  return attempt([&] {
    require(device, "device");
    require(launches, "launches");
    require(result, "result");
    if (count == 0)
      userError("there is nothing to launch: count is 0");
    std::vector<LaunchDescription> descriptions;
    for (size_t i = 0; i < count; ++i) {
      require(launches[i], "launch");
      descriptions.push_back(describe(*launches[i]));
    }
    *result = exploreAll(*device, descriptions,
                         options ? settingsOf(options) : device->settings)
                  .release();
  });
}

/// As many of its numbers as the map has dimensions.
template <typename Number, typename Given>
static std::vector<Number> numbersOf(const Given *given, std::uint32_t count) {
  return std::vector<Number>(given, given + count);
}

static TensorMap mapOf(const kiln_tensor_map &given) {
  kiln_tensor_map map =
      readStructure(given, sizeof(kiln_tensor_map), "tensor map");
  require(map.type, "map->type");
  if (map.rank < 1 || map.rank > std::size(map.dims))
    userError("the rank of a tensor map is {}; it is from 1 to 5", map.rank);
  TensorMap known{.type = parse_type(map.type),
                  .address = map.address,
                  .dims = numbersOf<std::uint64_t>(map.dims, map.rank),
                  .strides_bytes = numbersOf<std::uint64_t>(map.strides_bytes,
                                                            map.rank - 1),
                  .box = numbersOf<std::uint32_t>(map.box, map.rank),
                  .element_strides = numbersOf<std::uint32_t>(
                      map.element_strides, map.rank),
                  .swizzle = static_cast<Swizzle>(map.swizzle_bytes),
                  .interleave = static_cast<Interleave>(map.interleave_bytes),
                  .l2 = static_cast<L2Promotion>(map.l2_promotion_bytes),
                  .oob = map.fills_with_nan ? OobFill::nan : OobFill::zeros};
  for (std::uint32_t &stride : known.element_strides)
    stride = std::max(stride, 1u);
  auto takes = [](const char *what, std::uint32_t value,
                  std::initializer_list<std::uint32_t> words) {
    if (std::find(words.begin(), words.end(), value) == words.end())
      userError("the {} of a tensor map is {}; it takes {}", what, value,
                fmt::join(words, ", "));
  };
  takes("swizzle_bytes", map.swizzle_bytes, {0, 32, 64, 128});
  takes("interleave_bytes", map.interleave_bytes, {0, 16, 32});
  takes("l2_promotion_bytes", map.l2_promotion_bytes, {0, 64, 128, 256});
  check(known, "the tensor map");
  return known;
}

kiln_error *kiln_tensor_map_encode(const kiln_device *device,
                                   const kiln_tensor_map *map, void *encoded) {
  return attempt([&] {
    require(device, "device");
    require(map, "map");
    require(encoded, "encoded");
    TensorMap known = mapOf(*map);
    auto bytes = device->device->kind() == DeviceKind::sim
                     ? sim_tensor_map(known)
                     : cuda_tensor_map(known);
    std::memcpy(encoded, bytes.data(), bytes.size());
  });
}
