// FileKeys: the rows of a launch file, of a launch, and of a name in shared
// memory.
#include "check/launchfile/Reader.h"
#include "check/launchfile/Writer.h"

namespace kiln::launchfile {

/// Sizes have 32 bits here; the device says how large they may be.
static constexpr std::uint64_t kMaxSize = 0xffffffff;
/// Bytes and lines of what is in shared memory.
static constexpr std::uint64_t kMaxShared = 1 << 20;
static constexpr std::uint64_t kMaxRegisters = 256;

using Dim3 = std::array<std::uint32_t, 3>;
using R = Reader;
using W = Writer;
using N = JsonNode;

static Dim3 readDim3(const JsonNode &node) {
  Dim3 result;
  std::vector<JsonNode> axes = node.list("three whole numbers, [x, y, z]");
  if (axes.size() != 3)
    node.refuse("a list of three whole numbers, [x, y, z]");
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = static_cast<std::uint32_t>(axes[i].whole(1, kMaxSize));
  return result;
}

static std::vector<std::string> readTexts(const JsonNode &list,
                                          const std::string &what,
                                          const std::string &one) {
  std::vector<std::string> texts;
  for (const JsonNode &node : list.list(what))
    texts.push_back(node.text(one));
  return texts;
}

/// Left out where it is 0, false or empty.
template <typename T> static Json unlessNothing(const T &value) {
  return value == T() ? Json() : Json(value);
}

static void readPtx(R &reader, const N &node, LaunchFile &file) {
  std::vector<std::string> names =
      readTexts(node, "names of PTX files", "the name of a PTX file");
  if (names.empty())
    node.refuse("a list of at least one name of a PTX file");
  for (const std::string &name : names)
    file.ptx_paths.push_back(reader.pathOf(name));
}

static Json writePtx(const W &writer, const LaunchFile &file) {
  Json list = Json::array();
  for (const std::string &path : file.ptx_paths)
    list.push_back(writer.nameOf(path));
  return list.empty() ? Json() : list;
}

static void readShared(R &reader, const N &node, LaunchFile &file) {
  for (const JsonNode &one : node.list("objects")) {
    SharedObject object;
    readObject(reader, one, sharedKeys(), object);
    file.shared_objects.push_back(std::move(object));
  }
}

static Json writeShared(const W &writer, const LaunchFile &file) {
  Json list = Json::array();
  for (const SharedObject &object : file.shared_objects)
    list.push_back(writeObject(writer, sharedKeys(), object));
  return list.empty() ? Json() : list;
}

static Json writeLaunches(const W &writer, const LaunchFile &file) {
  Json list = Json::array();
  for (const LaunchSpec &launch : file.launches)
    list.push_back(writer.launch(launch));
  return list.size() == 1 ? Json() : list; // its keys are those of the file
}

static const Keys<LaunchFile> kFileKeys = {
    {{"file", "ptx", "names of PTX files", "what the command names",
      "several are linked; `kiln sim LAUNCH.json` alone then runs them, and "
      "`kiln sim OTHER.ptx --launch LAUNCH.json` another kernel in their "
      "place"},
     readPtx,
     writePtx},
    {{"file", "buffers", "a list of buffers", "none",
      "those that no argument declares: tensor maps, structs and fields refer "
      "to them by name"},
     [](R &r, const N &n, LaunchFile &) { r.declareBuffers(n); },
     [](const W &w, const LaunchFile &) { return w.buffersApart(); }},
    {{"file", "printf", "a list of lines", "nothing is compared",
      "what the kernels print, in any order of the lines"},
     [](R &, const N &n, LaunchFile &f) {
       f.printed = readTexts(n, "lines", "a line of text");
     },
     [](const W &, const LaunchFile &f) {
       return f.printed ? Json(*f.printed) : Json();
     }},
    {{"file", "registers", "a whole number from 1 to 256",
      "as ptxas or the PTX says", "registers per thread at entry"},
     [](R &, const N &n, LaunchFile &f) {
       f.registers_at_entry = static_cast<int>(n.whole(1, kMaxRegisters));
     },
     [](const W &, const LaunchFile &f) {
       return unlessNothing(f.registers_at_entry);
     }},
    {{"file", "deterministic", "true or false", "false",
      "true: results that differ between interleavings are an error"},
     [](R &, const N &n, LaunchFile &f) { f.is_deterministic = n.boolean(); },
     [](const W &, const LaunchFile &f) {
       return unlessNothing(f.is_deterministic);
     }},
    {{"file", "launches", "a list of launches", "one, with its keys here",
      "several launches over the same buffers, in the order of a stream"},
     [](R &r, const N &n, LaunchFile &f) { r.readLaunches(n, f); },
     writeLaunches},
    {{"file", "co_resident", "true or false", "false",
      "true where CTAs wait for one another (a cooperative launch): the launch "
      "is refused where the device cannot hold them all at once"},
     [](R &, const N &n, LaunchFile &f) { f.is_co_resident = n.boolean(); },
     [](const W &, const LaunchFile &f) {
       return unlessNothing(f.is_co_resident);
     }},
    {{"file", "shared", "a list of names in shared memory", "none",
      "names of what lies in dynamic shared memory, for findings"},
     readShared,
     writeShared},
};

const Keys<LaunchFile> &fileKeys() { return kFileKeys; }

static const Keys<LaunchSpec> kLaunchKeys = {
    {{"launch", "kernel", "the name of an entry", "the only one",
      "the entry that is launched"},
     [](R &, const N &n, LaunchSpec &l) {
       l.kernel = n.text("the name of an entry");
     },
     [](const W &, const LaunchSpec &l) { return unlessNothing(l.kernel); }},
    {{"launch", "grid", "`[x, y, z]`", "", "CTAs, not clusters"},
     [](R &, const N &n, LaunchSpec &l) { l.grid = readDim3(n); },
     [](const W &, const LaunchSpec &l) { return Json(l.grid); }},
    {{"launch", "block", "`[x, y, z]`", "", "threads of a CTA"},
     [](R &, const N &n, LaunchSpec &l) { l.block = readDim3(n); },
     [](const W &, const LaunchSpec &l) { return Json(l.block); }},
    {{"launch", "cluster", "`[x, y, z]`",
      "what `.reqnctapercluster` says, else `[1, 1, 1]`", "CTAs of a cluster"},
     [](R &, const N &n, LaunchSpec &l) { l.cluster = readDim3(n); },
     [](const W &, const LaunchSpec &l) {
       return l.cluster == Dim3{1, 1, 1} ? Json() : Json(l.cluster);
     }},
    {{"launch", "dynamic_smem", "a number of bytes", "0",
      "dynamic shared memory"},
     [](R &, const N &n, LaunchSpec &l) {
       l.dynamic_smem_bytes = static_cast<std::uint32_t>(n.whole(0, kMaxSize));
     },
     [](const W &, const LaunchSpec &l) {
       return l.dynamic_smem_bytes ? Json(*l.dynamic_smem_bytes) : Json();
     }},
    {{"launch", "dependent", "true or false", "false",
      "true where the launch may begin before the one ahead has ended "
      "(programmatic stream serialization)"},
     [](R &r, const N &n, LaunchSpec &l) {
       l.is_dependent = n.boolean();
       if (l.is_dependent && !r.isBehindAnother())
         n.refuse("false, since no launch is ahead of this one");
     },
     [](const W &, const LaunchSpec &l) {
       return unlessNothing(l.is_dependent);
     }},
    {{"launch", "args", "a list of arguments", "",
      "one for each parameter, in their order"},
     [](R &r, const N &n, LaunchSpec &l) {
       for (const JsonNode &argument : n.list("arguments"))
         l.arguments.push_back(r.argument(argument));
     },
     [](const W &w, const LaunchSpec &l) {
       Json list = Json::array();
       for (const LaunchFileArgument &argument : l.arguments)
         list.push_back(w.argument(argument));
       return list;
     }},
};

const Keys<LaunchSpec> &launchKeys() { return kLaunchKeys; }

static const Keys<SharedObject> kSharedKeys = {
    {{"shared", "name", "a name", "", "what findings call it"},
     [](R &, const N &n, SharedObject &o) { o.name = n.text("a name"); },
     [](const W &, const SharedObject &o) { return Json(o.name); }},
    {{"shared", "offset", "a number of bytes", "",
      "from the beginning of the dynamic shared memory"},
     [](R &, const N &n, SharedObject &o) {
       o.offset = static_cast<int>(n.whole(0, kMaxShared));
     },
     [](const W &, const SharedObject &o) { return Json(o.offset); }},
    {{"shared", "element_bytes", "a number of bytes", "",
      "the size of an element"},
     [](R &, const N &n, SharedObject &o) {
       o.element_bytes = static_cast<int>(n.whole(1, kMaxShared));
     },
     [](const W &, const SharedObject &o) { return Json(o.element_bytes); }},
    {{"shared", "count", "a whole number from 1 on", "1",
      "elements, one behind the other"},
     [](R &, const N &n, SharedObject &o) {
       o.count = static_cast<int>(n.whole(1, kMaxShared));
     },
     [](const W &, const SharedObject &o) {
       return o.count == 1 ? Json() : Json(o.count);
     }},
    {{"shared", "file", "the name of a file", "none", "where it is declared"},
     [](R &, const N &n, SharedObject &o) {
       o.file = n.text("the name of a file");
     },
     [](const W &, const SharedObject &o) { return unlessNothing(o.file); }},
    {{"shared", "line", "a whole number from 0 on", "0: unknown",
      "the line there"},
     [](R &, const N &n, SharedObject &o) {
       o.line = static_cast<int>(n.whole(0, kMaxShared));
     },
     [](const W &, const SharedObject &o) { return unlessNothing(o.line); }},
};

const Keys<SharedObject> &sharedKeys() { return kSharedKeys; }

} // namespace kiln::launchfile
