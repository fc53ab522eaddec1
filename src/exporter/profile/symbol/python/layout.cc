#include "exporter/profile/symbol/python/layout.h"

#include <algorithm>
#include <array>

#include "exporter/profile/symbol/byte_reader.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kCookie = "xdebugpy";
// Interpreters have a state of some 100 KiB; other structures are smaller.
constexpr std::uint64_t kMaxOffset = std::uint64_t{1} << 20U;

// Offsets of 64-bit builds without Py_TRACE_REFS, printed by offsetof() with the headers of
// releases 3.6.15, 3.7.16, 3.8.18, 3.9.2, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1.
constexpr PythonLayout k36{.interpreters = 0,
                           .interpreter_next = 0,
                           .interpreter_threads = 8,
                           .thread_next = 8,
                           .thread_id = 152,
                           .thread_frame = 24,
                           .frame_code = 32,
                           .frame_previous = 24,
                           .entry = PythonEntry::kEvery,
                           .code_file = 96,
                           .code_name = 104,
                           .code_qualified_name = 104,
                           .code_first_line = 36,
                           .text_length = 16,
                           .text_state = 32,
                           .text_state_kind = 2,
                           .text_ascii = 48,
                           .text_compact = 72};

constexpr PythonLayout k37 = [] {
  PythonLayout layout = k36;
  layout.interpreters = 24;
  layout.thread_id = 176;
  return layout;
}();

constexpr PythonLayout k38 = [] {
  PythonLayout layout = k37;
  layout.interpreters = 32;
  layout.code_file = 104;
  layout.code_name = 112;
  layout.code_qualified_name = 112;
  layout.code_first_line = 40;
  return layout;
}();

constexpr PythonLayout k311{.interpreters = 40,
                            .interpreter_next = 0,
                            .interpreter_threads = 16,
                            .thread_next = 8,
                            .thread_id = 152,
                            .thread_frame = 56,
                            .holder = true,
                            .holder_frame = 8,
                            .frame_code = 32,
                            .frame_previous = 48,
                            .frame_entry = 68,
                            .entry = PythonEntry::kFlag,
                            .code_file = 112,
                            .code_name = 120,
                            .code_qualified_name = 128,
                            .code_first_line = 72,
                            .text_length = 16,
                            .text_state = 32,
                            .text_state_kind = 2,
                            .text_ascii = 48,
                            .text_compact = 72};

constexpr PythonLayout k312{.interpreters = 40,
                            .interpreter_next = 0,
                            .interpreter_threads = 72,
                            .thread_next = 8,
                            .thread_id = 136,
                            .thread_frame = 56,
                            .holder = true,
                            .holder_frame = 0,
                            .frame_code = 0,
                            .frame_previous = 8,
                            .frame_entry = 70,
                            .entry = PythonEntry::kOwner,
                            .code_file = 112,
                            .code_name = 120,
                            .code_qualified_name = 128,
                            .code_first_line = 68,
                            .text_length = 16,
                            .text_state = 32,
                            .text_state_kind = 2,
                            .text_ascii = 40,
                            .text_compact = 56};

/// Which 64-bit words of a description hold the offsets. Word 0 is the cookie, 1 the version of
/// Python, 2 whether the build has no global lock.
struct DescriptionWords {
  std::size_t interpreters;
  std::size_t interpreter_next;
  std::size_t interpreter_threads;
  std::size_t thread_next;
  std::size_t thread_frame;
  std::size_t thread_id;
  std::size_t frame_previous;
  std::size_t frame_code;
  std::size_t frame_owner;
  std::size_t code_file;
  std::size_t code_name;
  std::size_t code_qualified_name;
  std::size_t code_first_line;
  std::size_t text_size;
  std::size_t text_state;
  std::size_t text_length;
  std::size_t text_ascii;
};

// Printed by offsetof() with the headers of 3.13.0 and 3.13.5, 3.14.10 and 3.15.2.
constexpr std::array<DescriptionWords, 3> kDescriptions{{
    {5, 8, 9, 21, 23, 24, 29, 30, 33, 35, 36, 37, 39, 67, 68, 69, 70},
    {5, 8, 9, 24, 26, 27, 32, 33, 36, 40, 41, 42, 44, 77, 78, 79, 80},
    {5, 8, 9, 24, 26, 30, 40, 41, 44, 48, 49, 50, 52, 89, 90, 91, 92},
}};
static_assert(kDescriptions.size() == kLastPythonMinor - kFirstDescribedMinor + 1);

}  // namespace

std::optional<PythonLayout> known_python_layout(unsigned minor) {
  switch (minor) {
    case 6:
      return k36;
    case 7:
      return k37;
    case 8:
    case 9:
    case 10:
      return k38;
    case 11:
      return k311;
    case 12:
      return k312;
    default:
      return std::nullopt;
  }
}

Result<PythonLayout> parse_python_description(std::string_view bytes) {
  constexpr std::size_t kWord = 8;
  bool good = bytes.starts_with(kCookie);
  const auto word = [&](std::size_t index) {
    ByteReader reader(bytes, index * kWord);
    const std::uint64_t value = reader.u64();
    good = good && reader.good();
    return value;
  };
  const std::uint64_t version = word(1);
  if (!good) {
    return fail(ErrorCode::kParse, "not a description of a Python interpreter");
  }
  // As PY_VERSION_HEX: a byte for the major and one for the minor version, and two more.
  const std::uint64_t minor = (version >> 16U) & 0xFFU;
  if (version >> 24U != 3 || minor < kFirstDescribedMinor || minor > kLastPythonMinor) {
    return fail(ErrorCode::kParse, "unknown version {:x} of Python", version);
  }
  const bool free_threaded = word(2) != 0;
  const auto offset = [&](std::size_t index) {
    const std::uint64_t value = word(index);
    good = good && value < kMaxOffset;
    return static_cast<std::uint32_t>(good ? value : 0);
  };
  const DescriptionWords& at = kDescriptions.at(minor - kFirstDescribedMinor);
  const std::uint32_t text_size = offset(at.text_size);
  const PythonLayout layout{.interpreters = offset(at.interpreters),
                            .interpreter_next = offset(at.interpreter_next),
                            .interpreter_threads = offset(at.interpreter_threads),
                            .thread_next = offset(at.thread_next),
                            .thread_id = offset(at.thread_id),
                            .thread_frame = offset(at.thread_frame),
                            .frame_code = offset(at.frame_code),
                            .frame_previous = offset(at.frame_previous),
                            .frame_entry = offset(at.frame_owner),
                            .entry = PythonEntry::kOwner,
                            .code_file = offset(at.code_file),
                            .code_name = offset(at.code_name),
                            .code_qualified_name = offset(at.code_qualified_name),
                            .code_first_line = offset(at.code_first_line),
                            .text_length = offset(at.text_length),
                            .text_state = offset(at.text_state),
                            // Without a lock, .state.interned before it is a byte (from 3.14 on).
                            .text_state_kind = free_threaded && minor >= 14 ? 8U : 2U,
                            .text_ascii = offset(at.text_ascii),
                            // PyUnicodeObject has one pointer more.
                            .text_compact = text_size - std::min<std::uint32_t>(text_size, kWord)};
  if (!good || layout.text_ascii == 0 || layout.text_compact < layout.text_ascii) {
    return fail(ErrorCode::kParse, "a Python interpreter describes itself by impossible offsets");
  }
  return layout;
}

}  // namespace ceems::exporter::profile
