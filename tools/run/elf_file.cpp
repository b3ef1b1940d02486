// elf_file: section headers, names and the dynamic section, bounds checked.
#include "elf_file.h"
#include "support/InputFile.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

namespace kiln::cli {

namespace {
struct Header {
  unsigned char ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, segments, sections;
  std::uint32_t flags;
  std::uint16_t header_bytes, segment_bytes, segment_count, section_bytes,
      section_count, names;
};
struct Section {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, bytes;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_bytes;
};
struct Dynamic {
  std::int64_t tag;
  std::uint64_t value;
};

class Reader {
public:
  explicit Reader(const std::string &path) : file_(path) {}

  template <typename T> bool read(std::uint64_t offset, T &to) {
    return file_.readAt(offset, &to, sizeof(T));
  }
  /// A text that ends with a NUL; empty where there is none.
  std::string text(std::uint64_t offset) {
    constexpr std::size_t longest = 256;
    std::string text;
    for (char c = 0; text.size() < longest && read(offset++, c) && c;)
      text += c;
    return text;
  }

private:
  InputFile file_;
};
} // namespace

/// The libraries that the dynamic section names.
static std::vector<std::string>
needed_by(Reader &reader, const Section &dynamic, std::uint64_t strings) {
  std::vector<std::string> needed;
  constexpr std::uint64_t longest = 1 << 20;
  std::uint64_t bytes = std::min(dynamic.bytes, longest);
  for (std::uint64_t at = 0; at + sizeof(Dynamic) <= bytes;
       at += sizeof(Dynamic)) {
    Dynamic entry{};
    if (!reader.read(dynamic.offset + at, entry) || entry.tag == 0)
      break;
    if (entry.tag == 1)
      needed.push_back(reader.text(strings + entry.value));
  }
  return needed;
}

ElfFile read_elf(const std::string &path) {
  constexpr std::uint32_t dynamic_type = 6;
  ElfFile result;
  Reader reader(path);
  Header header{};
  if (!reader.read(0, header) || std::memcmp(header.ident, "\177ELF\2", 5) != 0)
    return result;
  result.is_elf = true;
  auto section_at = [&](std::uint32_t number) -> std::optional<Section> {
    Section section{};
    if (number >= header.section_count ||
        !reader.read(header.sections +
                         std::uint64_t(number) * header.section_bytes,
                     section))
      return std::nullopt;
    return section;
  };
  std::optional<Section> names = section_at(header.names);
  for (std::uint32_t i = 0; names && i < header.section_count; ++i) {
    std::optional<Section> section = section_at(i);
    if (!section)
      break;
    std::string name = reader.text(names->offset + section->name);
    result.has_fatbin |= name == ".nv_fatbin" || name == "__nv_relfatbin";
    if (section->type != dynamic_type)
      continue;
    if (std::optional<Section> strings = section_at(section->link))
      result.needed = needed_by(reader, *section, strings->offset);
  }
  return result;
}

} // namespace kiln::cli
