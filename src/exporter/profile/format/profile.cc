#include "exporter/profile/format/profile.h"

#include <algorithm>

#include "base/utf8.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kCut = "…";

/// White space other than the space itself, and separators of lines.
bool breaks_line(char32_t c) {
  return (c >= U'\t' && c <= U'\r') || c == 0x85 || c == 0x2028 || c == 0x2029;
}

/// The same rule as for terminals, except for U+FEFF: a reader of a folded file that begins with it
/// drops it as a byte order mark.
bool is_shown(char32_t c) {
  return is_printable(c) && c != 0xFEFF;
}

}  // namespace

std::string shown_name(std::string_view name) {
  std::string shown;
  shown.reserve(std::min(name.size(), kMaxNameBytes));
  std::size_t before_cut = 0;  // where the mark of a cut fits
  while (!name.empty()) {
    const std::size_t length = utf8_length(name);
    std::string_view next = length == 0 ? kReplacementCharacter : name.substr(0, length);
    if (const char32_t c = code_point(next); breaks_line(c)) {
      next = " ";
    } else if (!is_shown(c)) {
      next = kReplacementCharacter;
    }
    if (shown.size() + next.size() > kMaxNameBytes) {
      shown.resize(before_cut);
      shown += kCut;
      break;
    }
    shown += next;
    if (shown.size() + kCut.size() <= kMaxNameBytes) {
      before_cut = shown.size();
    }
    name.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string shown_name(const Frame& frame) {
  if (frame.name.empty()) {
    return frame.kind == FrameKind::kProcess ? "pid_unknown" : "[unknown]";
  }
  return shown_name(frame.name);
}

bool shows_code(const Profile& profile, const Stack& stack) {
  return stack.samples > 0 && std::ranges::any_of(stack.frames, [&](std::uint32_t frame) {
           return profile.frames.at(frame).kind != FrameKind::kProcess;
         });
}

bool shows_code(const Profile& profile) {
  return std::ranges::any_of(profile.stacks,
                             [&](const Stack& stack) { return shows_code(profile, stack); });
}

}  // namespace ceems::exporter::profile
