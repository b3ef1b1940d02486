// LaunchFile: what is read is written, and what is written is read as the same.
#include "kiln/check/launch_file.h"

#include "unit/support/ErrorText.h"
#include "unit/support/TestFolder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <kiln/base/file.h>
#include <nlohmann/json.hpp>
#include <set>

using namespace kiln;
using nlohmann::json;
using testing::HasSubstr;

/// Every key that a file of one launch can have, as it is written.
static const std::string kWhole = R"({
  "x-of": [1, {"a": null}],
  "ptx": [
    "a.ptx",
    "sub/b.ptx"
  ],
  "kernel": "k",
  "grid": [4, 2, 1],
  "block": [32, 1, 1],
  "cluster": [2, 1, 1],
  "dynamic_smem": 64,
  "args": [
    {"buffer": "out", "type": "f32", "shape": [3, 4], "output": true, "expected": "file:want.npy", "rtol": 0.001, "atol": 0.5, "x-note": "here", "offset": 16},
    {"buffer": "far", "offset": 8},
    {"scalar": "i8", "value": -3, "x-name": "n"},
    {"scalar": "f32", "value": 0.5},
    {"scalar": "u64", "value": 18446744073709551615},
    {"tensor_map": {"of": "far", "type": "f16", "dims": [16, 2, 3], "strides_bytes": [32, 64], "box": [16, 1, 1], "element_strides": [1, 2, 1], "swizzle": 32, "interleave": 32, "l2": 256, "oob": "nan"}},
    {"struct": {"size": 24, "fields": [{"offset": 8, "arg": {"buffer": "in", "type": "i64", "shape": [], "init": "iota"}}, {"offset": 16, "arg": {"struct": {"size": 4, "fields": [{"offset": 3, "arg": {"scalar": "u8", "value": 7}}]}}}]}}
  ],
  "buffers": [
    {"buffer": "far", "type": "u8", "shape": [256], "init": "file:in.npy", "address": "0x7f0000000000", "fields": [{"offset": 0, "arg": {"buffer": "out"}}], "variable": true, "written": "file:in.written.npy"},
    {"buffer": "r", "type": "e4m3", "shape": [8], "init": "random:7:-0.25:3"},
    {"buffer": "s", "type": "bf16", "shape": [8], "init": "random:8", "expected": "file:sub/s.npy", "exact": true},
    {"buffer": "t", "type": "f64", "shape": [8], "init": "poison", "expected": "file:t.npy", "atol": 0.0}
  ],
  "printf": [
    "b",
    "a"
  ],
  "registers": 40,
  "deterministic": true,
  "co_resident": true,
  "shared": [
    {"name": "full", "offset": 8, "element_bytes": 8, "count": 2, "file": "k.cpp", "line": 30}
  ]
}
)";

static const std::string kList = R"({
  "launches": [
    {
      "x-note": "first",
      "kernel": "a",
      "grid": [1, 1, 1],
      "block": [1, 1, 1],
      "args": []
    },
    {
      "grid": [1, 1, 1],
      "block": [1, 1, 1],
      "dependent": true,
      "args": []
    }
  ]
}
)";

static std::string rewritten(const std::string &text,
                             const std::string &folder = "") {
  return LaunchFile::parse(text, "test.json", folder).to_json(folder);
}

TEST(LaunchFile, EveryKeyIsReadAndWritten) {
  EXPECT_EQ(rewritten(kWhole), kWhole);
  EXPECT_EQ(rewritten(kList), kList);
  // And they are all keys of the table that are kept.
  for (const LaunchFileKey &key : launch_file_keys()) {
    bool isKept = key.name != "align";
    EXPECT_EQ((kWhole + kList).find(fmt::format("\"{}\": ", key.name)) !=
                  std::string::npos,
              isKept)
        << key.place << " " << key.name;
  }
}

TEST(LaunchFile, EachRowSaysWhatItIs) {
  std::set<std::string> seen;
  for (const LaunchFileKey &key : launch_file_keys()) {
    EXPECT_TRUE(seen.insert(key.place + "." + key.name).second) << key.name;
    EXPECT_FALSE(key.accepted.empty()) << key.name;
    EXPECT_FALSE(key.help.empty()) << key.name;
  }
}

/// The page has the tables as they follow from the rows.
TEST(LaunchFile, KeysAreOnThePage) {
  std::string page = read_file(KILN_SOURCE_DIR "/docs/launch-file.md");
  std::set<std::string> places;
  for (const LaunchFileKey &key : launch_file_keys())
    places.insert(key.place);
  EXPECT_EQ(places.size(), 9u);
  for (const std::string &place : places)
    EXPECT_NE(page.find(launch_file_table(place)), std::string::npos)
        << "docs/launch-file.md has no such table:\n"
        << launch_file_table(place);
}

TEST(LaunchFile, PathsAreThoseOfItsFolder) {
  LaunchFile file = LaunchFile::parse(kWhole, "test.json", "some/folder");
  EXPECT_EQ(file.ptx_paths[1], "some/folder/sub/b.ptx");
  EXPECT_EQ(file.buffers[2].expected_path, "some/folder/sub/s.npy");
  EXPECT_EQ(file.to_json("some/folder"), kWhole);
  // In another folder the names lead back.
  LaunchFile moved = LaunchFile::parse(file.to_json("other"), "test", "other");
  EXPECT_EQ(moved.ptx_paths[1], "other/../some/folder/sub/b.ptx");
  // From an absolute folder only absolute names do.
  EXPECT_THAT(file.to_json("/tmp"),
              HasSubstr((std::filesystem::current_path() / "some").string()));
}

TEST(LaunchFile, SavedIsLoaded) {
  TestFolder folder;
  std::string path = (folder.path() / "saved.json").string();
  LaunchFile::parse(kWhole, "test.json", folder.path().string()).save(path);
  EXPECT_EQ(readWhole(path), kWhole);
  EXPECT_EQ(LaunchFile::load(path).to_json(folder.path().string()), kWhole);
}

/// Without what is as if it were not there: a key with the value of its
/// default, and the alignment, which every buffer has.
static json withoutDefaults(const json &value) {
  static const std::set<std::string> kDefaults = {
      "\"offset\":0",          "\"output\":false",       "\"cluster\":[1,1,1]",
      "\"swizzle\":0",         "\"interleave\":0",       "\"l2\":128",
      "\"oob\":\"zeros\"",     "\"exact\":false",        "\"variable\":false",
      "\"co_resident\":false", "\"deterministic\":false"};
  json result = value;
  if (value.is_array()) {
    for (json &item : result)
      item = withoutDefaults(item);
    return result;
  }
  if (!value.is_object())
    return result;
  for (const auto &[key, item] : value.items()) {
    bool isField = key == "offset" && value.contains("arg");
    bool isOnes = key == "element_strides" &&
                  item == json(std::vector<int>(item.size(), 1));
    if (key == "align" || isOnes ||
        (!isField && kDefaults.contains(json(key).dump() + ":" + item.dump())))
      result.erase(key);
    else
      result[key] = withoutDefaults(item);
  }
  return result;
}

static void expectSame(const std::string &text, const std::string &what) {
  EXPECT_EQ(withoutDefaults(json::parse(text)),
            withoutDefaults(json::parse(rewritten(text))))
      << what;
}

/// The launch files of a page or a script: texts from one mark to another.
static int expectSameBetween(const std::string &path, const std::string &front,
                             const std::string &end) {
  std::string page = read_file(KILN_SOURCE_DIR + path);
  int count = 0;
  for (std::size_t at = page.find(front); at != std::string::npos;
       at = page.find(front, at)) {
    at = page.find('{', at);
    std::size_t until = page.find(end, at);
    std::string text = page.substr(at, until - at);
    // Those that are refused are not read.
    if (json::accept(text)) {
      try {
        LaunchFile::parse(text, path);
      } catch (const UserError &) {
        continue;
      }
      expectSame(text, fmt::format("{}: {}", path, text));
      ++count;
    }
  }
  return count;
}

TEST(LaunchFile, ThoseOfThePageAndTheTestsGoRound) {
  expectSame(read_file(KILN_SOURCE_DIR "/tests/doors/lazy_only.json"),
             "lazy_only.json");
  EXPECT_EQ(expectSameBetween("/docs/launch-file.md", "\n```json ", "\n```"),
            3);
  EXPECT_GE(expectSameBetween("/tests/cli/check_sim", "='{", "'\n"), 6);
  EXPECT_GE(expectSameBetween("/tests/cli/check_sim", "echo '{", "' >"), 6);
}

/// What is written for PTX to be filled in.
TEST(LaunchFile, FirstOnesGoRound) {
  int count = 0;
  for (const char *folder : {"/tests/corpus", "/tests/cli/sim"})
    for (const auto &entry : std::filesystem::directory_iterator(
             KILN_SOURCE_DIR + std::string(folder))) {
      if (entry.path().extension() != ".ptx")
        continue;
      Kernel kernel = read_kernel(entry.path().string());
      std::string text = first_launch_file(kernel).to_json();
      EXPECT_EQ(rewritten(text), text) << entry.path();
      ++count;
    }
  EXPECT_GT(count, 20);
}

TEST(LaunchFile, NumbersKeepTheirBits) {
  const std::pair<Scalar, const char *> rows[] = {
      {Scalar(f32, 0x7fc00000), R"({"scalar": "u32", "value": 2143289344})"},
      {Scalar(f64, 0xfff0000000000000),
       R"({"scalar": "u64", "value": 18442240474082181120})"},
      {Scalar(e4m3, 0x7f), R"({"scalar": "u8", "value": 127})"},
      {Scalar(f16, 0x7c00), R"({"scalar": "u16", "value": 31744})"},
      {Scalar(f16, 0x8000), R"({"scalar": "f16", "value": -0.0})"},
      {Scalar(f32, 1), R"({"scalar": "f32", "value": 1.401298464324817e-45})"},
      {Scalar(i64, std::uint64_t{1} << 63),
       R"({"scalar": "i64", "value": -9223372036854775808})"},
      {Scalar(i16, 0xfffe), R"({"scalar": "i16", "value": -2})"},
  };
  for (const auto &[scalar, written] : rows) {
    LaunchFile file{.launches = {{.arguments = {{scalar}}}}};
    EXPECT_THAT(file.to_json(), HasSubstr(written));
    LaunchFile read = LaunchFile::parse(file.to_json(), "test.json");
    auto again = std::get<Scalar>(read.launches[0].arguments[0].value);
    std::uint64_t mask = ~std::uint64_t{0} >> (64 - size_bits(scalar.type));
    EXPECT_EQ(again.bits & mask, scalar.bits) << written;
  }
}

/// Names come from somebody's program.
TEST(LaunchFile, NotesHoldAnyBytes) {
  LaunchFile file{.launches = {{}}};
  file.launches[0].notes = {LaunchFileNote::of("x-launch", "a\xff\"b")};
  EXPECT_THAT(LaunchFile::parse(file.to_json(), "test.json").to_json(),
              HasSubstr("\"x-launch\": \"a\xef\xbf\xbd\\\"b\""));
}

/// As the file, with some of its text replaced.
static std::string refusal(const std::string &text, const std::string &old,
                           const std::string &change) {
  std::string changed = text;
  std::size_t at = changed.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  changed.replace(at, old.size(), change);
  return errorText([&] { LaunchFile::parse(changed, "t.json"); });
}

TEST(LaunchFile, ADependentLaunchHasOneAhead) {
  for (const std::string &text : {kWhole, kList})
    EXPECT_THAT(refusal(text, "\"block\"", "\"dependent\": true, \"block\""),
                testing::HasSubstr("dependent is true; it must be false, since "
                                   "no launch is ahead of this one"));
  EXPECT_FALSE(LaunchFile::parse(kList, "t.json").launches[0].is_dependent);
  EXPECT_TRUE(LaunchFile::parse(kList, "t.json").launches[1].is_dependent);
}

TEST(LaunchFile, UnknownKeysAreRefusedByThoseOfTheirPlace) {
  EXPECT_EQ(
      refusal(kWhole, "\"kernel\"", "\"kernal\""),
      "t.json has the key 'kernal'; known are ptx, kernel, grid, block, "
      "cluster, dynamic_smem, dependent, args, buffers, printf, registers, "
      "deterministic, launches, co_resident, shared, and what begins with "
      "x- is ignored");
  EXPECT_EQ(refusal(kList, "\"launches\"", "\"grid\": [1, 1, 1], \"launches\""),
            "t.json has the key 'grid'; known are ptx, buffers, printf, "
            "registers, deterministic, launches, co_resident, shared, and what "
            "begins with x- is ignored");
  EXPECT_EQ(refusal(kList, "\"kernel\"", "\"kernal\""),
            "t.json: launches[0] has the key 'kernal'; known are kernel, grid, "
            "block, cluster, dynamic_smem, dependent, args, and what begins "
            "with x- is ignored");
  EXPECT_EQ(refusal(kWhole, "\"init\": \"random:8\"", "\"inti\": 1"),
            "t.json: buffers[2] has the key 'inti'; known are buffer, type, "
            "shape, init, output, expected, rtol, atol, exact, align, address, "
            "offset, fields, variable, written, and what begins with x- is "
            "ignored");
  EXPECT_EQ(refusal(kWhole, "\"swizzle\"", "\"swizle\""),
            "t.json: args[5].tensor_map has the key 'swizle'; known are of, "
            "type, dims, strides_bytes, box, element_strides, swizzle, "
            "interleave, l2, oob, and what begins with x- is ignored");
  EXPECT_EQ(refusal(kWhole, "\"size\": 24", "\"size\": 24, \"sise\": 1"),
            "t.json: args[6].struct has the key 'sise'; known are size, align, "
            "fields, and what begins with x- is ignored");
  EXPECT_EQ(refusal(kWhole, "\"line\"", "\"lime\""),
            "t.json: shared[0] has the key 'lime'; known are name, offset, "
            "element_bytes, count, file, line, and what begins with x- is "
            "ignored");
  // Fields of a buffer refer to buffers, and declare none.
  EXPECT_EQ(refusal(kWhole, "{\"buffer\": \"out\"}",
                    "{\"buffer\": \"out\", \"type\": \"f32\"}"),
            "t.json: buffers[0].fields[0].arg has the key 'type'; known are "
            "buffer, offset, and what begins with x- is ignored");
  EXPECT_EQ(
      refusal(kWhole, "{\"buffer\": \"far\", \"offset\": 8}",
              "{\"struct\": {\"size\": 1, \"fields\": []}, \"a\": 1}"),
      "t.json: args[1] has the key 'a'; known are struct, and what begins "
      "with x- is ignored");
}

TEST(LaunchFile, PlacesAreInMessages) {
  EXPECT_EQ(
      refusal(kWhole, "{\"offset\": 3,", "{\"offset\": 4,"),
      "t.json: args[6].struct.fields[1].arg.struct.fields[0].offset is 4; "
      "it must be a whole number from 0 to 3");
  EXPECT_EQ(refusal(kWhole, "{\"offset\": 16,", "{\"offset\": 23,"),
            "t.json: args[6].struct.fields[1].offset is 23; it must be at most "
            "20 for a field of 4 bytes in a struct of 24");
  EXPECT_EQ(refusal(kWhole, "\"grid\": [4, 2, 1],\n", ""),
            "t.json has no 'grid'");
  EXPECT_EQ(
      refusal(kWhole, "\"type\": \"f16\"", "\"type\": \"f12\""),
      "t.json: args[5].tensor_map.type is \"f12\"; it must be one of f16, "
      "bf16, f32, f64, i8, u8, i16, u16, i32, u32, i64, u64, e4m3, e5m2, "
      "tf32, e2m1");
  EXPECT_THAT(errorText([] { LaunchFile::parse("{", "t.json"); }),
              HasSubstr("t.json is not valid JSON: "));
}

/// Two to a byte: the page has them, and kernels of nvfp4 are saved with them.
TEST(LaunchFile, MapsMayBeOfElementsBelowAByte) {
  std::string text = kWhole;
  std::string old =
      R"("type": "f16", "dims": [16, 2, 3], "strides_bytes": [32, 64], "box": [16, 1, 1])";
  text.replace(
      text.find(old), old.size(),
      R"("type": "e2m1", "dims": [128, 2], "strides_bytes": [64], "box": [32, 1])");
  old = R"("element_strides": [1, 2, 1], "swizzle": 32, "interleave": 32, )";
  text.replace(text.find(old), old.size(), "\"swizzle\": 0, ");
  old = "\"oob\": \"nan\"";
  text.replace(text.find(old), old.size(), "\"oob\": \"zeros\"");
  LaunchFile file = LaunchFile::parse(text, "t.json");
  EXPECT_EQ(
      std::get<TensorMapArgument>(file.launches[0].arguments[5].value).map.type,
      e2m1);
  expectSame(text, "e2m1");
}
