#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/flags.h"

namespace ceems::exporter {

/// Releases of CEEMS that brought flags of the exporter or dropped some, and the newest one.
enum class Release {
  kV10,  ///< 0.10.2
  kV11,  ///< 0.11.0
  kV13,  ///< 0.13.0
  kV16,  ///< 0.16.1
};

/// "0.10.2" and so on.
std::string_view to_string(Release release);

/// The releases that know a flag, from `first` to `last`.
struct ReleaseRange {
  Release first = Release::kV10;
  Release last = Release::kV16;

  bool operator==(const ReleaseRange&) const = default;
};

/// A name of a flag that not every release knows, or that stands for another one.
struct FlagName {
  std::string_view name;  ///< without dashes
  std::string_view flag;  ///< the flag of this program for which it stands; empty: that of its name
  std::optional<ReleaseRange> known;  ///< nothing: only the documentation of CEEMS has the name
  std::string_view now = {};          ///< what later releases call it, where they have dropped it
  bool deprecated = false;            ///< its use is logged
  std::string_view env = {};          ///< environment variable that belongs to this name
};

/// All such names, of all releases.
std::span<const FlagName> flag_names();

/// Turns the names that stand for other flags into aliases of these. Call it when all flags have
/// been added. Names that stand for flags which `flags` does not have are left out.
void add_flag_aliases(config::FlagSet& flags);

/// Logs a warning for each deprecated name on the command line that `flags` parsed.
void log_deprecated_flags(const config::FlagSet& flags);

/// The releases that know the flag with this name. Nothing if none does.
std::optional<ReleaseRange> releases_with(std::string_view name);

/// Which releases know all flags of a command line.
struct ReleaseFit {
  std::string summary;             ///< one sentence
  std::vector<std::string> notes;  ///< a sentence for each flag that some release refuses
};

/// `given` has the names on the command line, without dashes.
ReleaseFit fitting_releases(const std::vector<std::string>& given);

}  // namespace ceems::exporter
