// KernelFile: a saved kernel is the same kernel, or is refused by name.
#include "kiln/run/kernel.h"

#include "support/Hash.h"
#include "unit/support/ErrorText.h"
#include "unit/support/TestFolder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace kiln;
using testing::HasSubstr;
using testing::StartsWith;
using Json = nlohmann::ordered_json;

/// A kernel that uses every field of the contract.
static Kernel fullKernel() {
  Dim m = Dim::argument("m");
  Kernel kernel;
  kernel.name = "gemm";
  kernel.target = "sm_90a";
  kernel.ptx = ".version 8.0\n// \"quoted\" \t \xc3\xa9\n";
  TensorMapSpec map = {.type = Type::bf16,
                       .dims = {64, m},
                       .strides_bytes = {128},
                       .box = {64, 128},
                       .element_strides = {1, 2},
                       .swizzle = Swizzle::b64,
                       .interleave = Interleave::b16,
                       .l2 = L2Promotion::b256,
                       .oob = OobFill::nan};
  using Argument = ArgumentSpec::Kind;
  using Parameter = ParameterSpec::Kind;
  LaunchContract &contract = kernel.contract;
  contract.arguments = {{"a", Argument::buffer, Type::bf16, {m, 64}, false},
                        {"d", Argument::buffer, Type::f32, {}, true},
                        {"m", Argument::scalar, Type::i32, {}, false},
                        {"w", Argument::buffer, Type::u32, {4}, true, 1, true}};
  contract.parameters = {{Parameter::tensor_map, 0, map},
                         {Parameter::buffer, 1, std::nullopt},
                         {Parameter::scalar, 2, std::nullopt}};
  contract.grid = {min(ceil_div(m, 128), Dim::argument("sms")), 2, 3};
  contract.block = {128, 2, 1};
  contract.cluster = {2, 1, 1};
  contract.dynamic_smem_bytes = 65536;
  contract.registers_at_entry = 168;
  contract.ctas_per_sm = 2;
  contract.is_cooperative = true;
  return kernel;
}

/// The saved kernel after `change`, with a checksum that is right again.
template <typename Change> static std::string changed(Change change) {
  Json document = Json::parse(fullKernel().serialize());
  document.erase("checksum");
  change(document);
  document["checksum"] = hashHex(document.dump());
  return document.dump();
}

template <typename Change> static std::string errorAfter(Change change) {
  return errorText([&] { Kernel::deserialize(changed(change), "x.kiln"); });
}

TEST(KernelFile, SavedAndLoadedIsTheSame) {
  TestFolder folder;
  std::string path = folder.path() / "gemm.kiln";
  fullKernel().save(path);
  EXPECT_EQ(Kernel::load(path), fullKernel());
  Kernel other = fullKernel();
  other.name = "other";
  other.save(path);
  EXPECT_EQ(Kernel::load(path).name, "other");
}

TEST(KernelFile, EmptyKernelSurvives) {
  EXPECT_EQ(Kernel::deserialize(Kernel().serialize()), Kernel());
}

TEST(KernelFile, LayoutOfTheTextDoesNotCount) {
  std::string compact = changed([](Json &) {});
  EXPECT_NE(compact, fullKernel().serialize());
  EXPECT_EQ(Kernel::deserialize(compact), fullKernel());
}

TEST(KernelFile, UnknownVersionIsRefused) {
  EXPECT_EQ(errorAfter([](Json &d) { d["kiln_kernel"] = 7; }),
            "x.kiln: the saved kernel has format version 7, this Kiln knows "
            "version 1; load it with a newer Kiln, or save it again with this "
            "one");
}

TEST(KernelFile, OtherFilesAreNoSavedKernel) {
  for (const char *bytes : {"",
                            "\x7f"
                            "ELF",
                            "{}", "[1, 2]", "{\"a\": 1}"})
    EXPECT_EQ(errorText([&] { Kernel::deserialize(bytes, "x.kiln"); }),
              "x.kiln: this is no saved kernel; Kernel::save writes one, a "
              "JSON document that begins with \"kiln_kernel\"");
  EXPECT_THAT(errorText([] { Kernel::deserialize("{}"); }),
              StartsWith("saved kernel: "));
}

TEST(KernelFile, TruncationAnywhereIsRefused) {
  std::string good = fullKernel().serialize();
  for (std::size_t size = 0; size + 2 < good.size(); ++size)
    ASSERT_THROW(Kernel::deserialize(good.substr(0, size)), UserError) << size;
  EXPECT_EQ(
      errorText([&] { Kernel::deserialize(good.substr(0, 200), "x.kiln"); }),
      "x.kiln: the saved kernel is damaged or cut short (200 bytes are "
      "there); save it again");
}

// Some flips change nothing that matters (white space); none may load as
// another kernel.
TEST(KernelFile, FlippedBitsNeverLoadAsAnotherKernel) {
  std::string good = fullKernel().serialize();
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    try {
      ASSERT_EQ(Kernel::deserialize(bad), fullKernel()) << i;
    } catch (const UserError &) {
    }
  }
}

TEST(KernelFile, ChecksumIsChecked) {
  Json document = Json::parse(fullKernel().serialize());
  document["name"] = "gemn";
  EXPECT_THAT(
      errorText([&] { Kernel::deserialize(document.dump(), "x.kiln"); }),
      testing::MatchesRegex("x.kiln: the saved kernel is damaged: its checksum "
                            "is [0-9a-f]+ and should be [0-9a-f]+; save it "
                            "again"));
}

TEST(KernelFile, MissingKeysAreNamed) {
  EXPECT_EQ(errorAfter([](Json &d) { d.erase("ptx"); }), "x.kiln has no 'ptx'");
  EXPECT_EQ(errorAfter([](Json &d) { d["contract"].erase("grid"); }),
            "x.kiln: contract has no 'grid'");
  EXPECT_EQ(errorAfter([](Json &d) {
              d["contract"]["parameters"][0]["tensor_map"].erase("box");
            }),
            "x.kiln: contract.parameters[0].tensor_map has no 'box'");
  EXPECT_THAT(errorText([] { Kernel::deserialize("{\"kiln_kernel\": 1}"); }),
              HasSubstr("has no 'checksum'"));
}

TEST(KernelFile, WrongValuesAreNamed) {
  auto contract = [](const char *key, Json value) {
    return errorAfter([&](Json &d) { d["contract"][key] = value; });
  };
  EXPECT_EQ(contract("ctas_per_sm", "two"),
            "x.kiln: contract.ctas_per_sm is \"two\"; it must be a whole "
            "number from 0 to 2147483647");
  EXPECT_THAT(contract("dynamic_smem_bytes", -1),
              HasSubstr("is -1; it must be a whole number"));
  EXPECT_THAT(contract("dynamic_smem_bytes", 1ull << 32),
              HasSubstr("is 4294967296; it must be a whole number"));
  EXPECT_THAT(contract("grid", 4), HasSubstr("is 4; it must be a list"));
  EXPECT_THAT(contract("block", {1, 2}),
              HasSubstr("is [1,2]; it must be a list of 3"));
  EXPECT_THAT(contract("grid", {"m", 1, "1"}),
              HasSubstr("contract.grid[1] is 1; it must be a string"));
  EXPECT_THAT(contract("grid", {"m +", "1", "1"}),
              HasSubstr("contract.grid[0]: \"m +\" is not a "
                        "valid dimension: the end is wanted at character 3"));
  EXPECT_THAT(errorAfter([](Json &d) { d["contract"] = 3; }),
              HasSubstr("x.kiln: contract is 3; it must be an object"));
}

TEST(KernelFile, WrongChoicesAreNamed) {
  auto argument = [](const char *key, Json value) {
    return errorAfter(
        [&](Json &d) { d["contract"]["arguments"][0][key] = value; });
  };
  EXPECT_THAT(
      argument("type", "half"),
      HasSubstr("contract.arguments[0].type: there is no type \"half\""));
  EXPECT_THAT(argument("kind", "map"),
              HasSubstr("is \"map\"; it must be one of \"buffer\", "
                        "\"scalar\""));
  EXPECT_THAT(argument("is_output", 1),
              HasSubstr("is 1; it must be true or false"));
  EXPECT_THAT(errorAfter([](Json &d) {
                d["contract"]["parameters"][0]["tensor_map"]["swizzle"] = 96;
              }),
              HasSubstr("is 96; it must be one of 0, 32, 64, 128"));
  EXPECT_THAT(
      errorAfter(
          [](Json &d) { d["contract"]["parameters"][1]["argument"] = 4; }),
      HasSubstr("is 4; it must be the number of one of its 4 arguments, from "
                "0"));
}

// Launch files and launches look a buffer up for such a parameter.
TEST(KernelFile, ParametersAreOfTheirArgumentsKind) {
  auto argument = [](int parameter, int index) {
    return errorAfter([&](Json &d) {
      d["contract"]["parameters"][parameter]["argument"] = index;
    });
  };
  EXPECT_THAT(argument(1, 2),
              HasSubstr("contract.parameters[1].argument is 2; it must be the "
                        "number of a buffer, as its kind is 'buffer'"));
  EXPECT_THAT(argument(0, 2), HasSubstr("as its kind is 'tensor_map'"));
  EXPECT_THAT(argument(2, 0),
              HasSubstr("the number of a scalar, as its kind is 'scalar'"));
}

TEST(KernelFile, UnwritablePathSaysWhy) {
  TestFolder folder;
  std::string path = folder.path() / "none" / "gemm.kiln";
  EXPECT_EQ(errorText([&] { fullKernel().save(path); }),
            "kernel \"gemm\" cannot be saved to " + path +
                ": No such file or directory; give a path in a folder that "
                "exists and can be written");
}

TEST(KernelFile, UnreadablePathSaysWhy) {
  TestFolder folder;
  std::string path = folder.path() / "none.kiln";
  EXPECT_EQ(errorText([&] { Kernel::load(path); }),
            path + " cannot be read: No such file or directory");
}

TEST(KernelFile, TextThatIsNotUtf8IsRefused) {
  Kernel kernel = fullKernel();
  kernel.ptx = "\xff";
  EXPECT_EQ(errorText([&] { kernel.serialize(); }),
            "kernel \"gemm\" cannot be saved: its name or its PTX has bytes "
            "that are not UTF-8; rename the source file the PTX speaks of");
}
