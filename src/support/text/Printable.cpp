// Printable: decode UTF-8, and write out what is not to be shown as it is.
#include "kiln/base/text.h"

#include <fmt/format.h>

namespace kiln {

namespace {

/// A character of UTF-8; `bytes` is 0 where there is none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

} // namespace

/// The character that `text` begins with. Longer forms than needed, halves of
/// UTF-16 and numbers beyond Unicode are none.
static Character firstOf(std::string_view text) {
  auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80)
    return {lead, 1};
  std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc0 || lead >= 0xf8 || text.size() < bytes)
    return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80)
      return {};
    code = code << 6 | (next & 0x3f);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  bool isSurrogate = code >= 0xd800 && code < 0xe000;
  if (code < least[bytes] || isSurrogate || code > 0x10ffff)
    return {};
  return {code, bytes};
}

/// Does a terminal do more than show this?
static bool isObeyed(std::uint32_t code) {
  if (code == '\n' || code == '\t')
    return false;
  bool isControl = code < 0x20 || (code >= 0x7f && code < 0xa0);
  bool turnsText = code == 0x200e || code == 0x200f || code == 0x061c ||
                   (code >= 0x2028 && code <= 0x202e) ||
                   (code >= 0x2066 && code <= 0x2069);
  return isControl || turnsText;
}

std::string printable(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    Character character = firstOf(text);
    std::size_t bytes = character.bytes ? character.bytes : 1;
    if (character.bytes && !isObeyed(character.code))
      shown += text.substr(0, bytes);
    else if (character.bytes < 2)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else
      shown += fmt::format("\\u{{{:x}}}", character.code);
    text.remove_prefix(bytes);
  }
  return shown;
}

std::string quote(std::string_view text, std::size_t limit_bytes) {
  if (text.size() <= limit_bytes)
    return std::string(text);
  std::size_t end = limit_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return fmt::format("{} ... ({} bytes)", text.substr(0, end), text.size());
}

} // namespace kiln
