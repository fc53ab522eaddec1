#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace ceems::exporter::marks {

/// Maximum length of a message, of the name of a region, result or figure of merit, and of a unit
/// of measurement, in bytes.
inline constexpr std::size_t kMaxMessage = 256;
inline constexpr std::size_t kMaxName = 32;
inline constexpr std::size_t kMaxMeasure = 16;
/// The highest number of results in one message.
inline constexpr double kMaxCount = 1e15;

/// What a program says about itself (docs/marks.md).
struct Message {
  enum class Kind : std::uint8_t {
    kBegin,     ///< begin NAME: a region begins
    kEnd,       ///< end NAME: it ends
    kResult,    ///< result NAME NUMBER [UNIT]: so many more results
    kProgress,  ///< progress NUMBER NAME: so many results since the program began
    kFom,       ///< fom NAME NUMBER [UNIT]: a figure of merit
    kAttach,    ///< attach: regions that this connection begins end with it
  };
  Kind kind = Kind::kBegin;
  std::string_view name = {};     ///< a part of the text that was parsed
  double value = 0;               ///< finite; 0 to kMaxCount except for kFom
  std::string_view measure = {};  ///< unit of measurement, such as "ns/day"; empty if not given
};

/// Parses one message: words separated by blanks, with or without a line end. Names start with a
/// letter and have letters, digits and "_.-". Units of measurement may have "/%^*" as well, and
/// start with a letter or "%". Nothing if the text has any other form.
std::optional<Message> parse_message(std::string_view text);

/// The path of the process in a hierarchy, from /proc/PID/cgroup (cgroups(7)). `controller` is a
/// controller of v1, or empty for v2. Nothing if the process is not in that hierarchy.
std::optional<std::string_view> parse_cgroup_path(std::string_view text,
                                                  std::string_view controller);

}  // namespace ceems::exporter::marks
