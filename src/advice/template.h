#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advice/value.h"
#include "base/result.h"

namespace ceems::advice {

/// How a number is written. Texts are never longer than a few dozen bytes.
enum class Form : std::uint8_t {
  kPlain,      ///< {n}: "8"; at most two decimals
  kPercent,    ///< {share:percent}: "14 %" of 0.14
  kBytes,      ///< {peak:bytes}: "7.9 GiB"
  kDuration,   ///< {p95:duration}: "18 h 42 min"
  kGigabytes,  ///< {want:G}: "10G" or "512M", as SLURM reads it
  kLsfBytes,   ///< {want:GB}: "10GB" or "512MB", as LSF reads it
  kPbsBytes,   ///< {want:gb}: "10gb" or "512mb", as OpenPBS reads it
  kK8sBytes,   ///< {want:Gi}: "10Gi" or "512Mi", as Kubernetes reads it
  kMebi,       ///< {want:M}: "10240", for a manager that reads numbers without unit as MiB
  kMilli,      ///< {cpus:m}: "1500m" or "2", as Kubernetes reads CPUs; rounded up
  kClock,      ///< {want:clock}: "1-06:00:00", as SLURM reads it
  kHours,      ///< {want:hm}: "30:00", hours and minutes, as LSF reads it; rounded up
  kSeconds,    ///< {want:hms}: "30:00:00", as OpenPBS reads it
};

/// How a language writes numbers. It has no effect on the forms that a manager reads.
struct Notation {
  char comma = '.';       ///< decimal separator
  std::string day = "d";  ///< sign of a day in durations
};

std::string format_number(double number, Form form, const Notation& notation = {});

/// One placeholder of a template.
struct Placeholder {
  std::string name = {};
  Form form = Form::kPlain;
  /// "{n|node|nodes}": the first text if the number is 1, else the second, and so if it is unknown.
  std::optional<std::pair<std::string, std::string>> words = {};
};
/// The placeholders of a template, "{name}", "{name:form}" or "{name|one|other}", in order.
/// kInvalidArgument for braces that do not match, malformed names and unknown forms.
Result<std::vector<Placeholder>> placeholders(std::string_view text);

/// Replaces the placeholders of a valid template. Nothing if one of them has no value.
std::optional<std::string> fill(std::string_view text,
                                const Names& names,
                                const Notation& notation = {});

}  // namespace ceems::advice
