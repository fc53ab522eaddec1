#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "advice/judge.h"
#include "report/report.h"

namespace ceems::report {

/// What was used in a month. Hours are those that were allocated, from the accounting.
struct MonthOfUse {
  std::string month = {};  ///< "2026-11"
  double core_hours = 0, gpu_hours = 0;
  Number kwh = {}, grams = {};  ///< as the meters of the nodes say, see Digest::method
  Number units = {};            ///< that ended in it
  /// Shares of the energy of those units of which it is known: the idle power of what they had
  /// reserved, and the part of it that they did not use at that time.
  Number idle_share = {}, not_used_share = {};
};

/// The kind of job of which the share of the energy that was not used fell most.
struct Improvement {
  std::string name = {};  ///< with each run of digits as '#'; empty: withheld
  std::int64_t runs = 0;  ///< in this month
  double before = 0, now = 0;
  double saved_kwh = 0;  ///< at the share of the month before it would have been as much more
};

/// A suggestion of the reports of units that ended in the month.
struct RepeatedFinding {
  advice::Finding finding = {};  ///< that of the newest unit
  std::string cluster_id = {}, uuid = {};
  std::int64_t units = 0;  ///< that have it
};

/// Where a project stands among all of the site, without naming or measuring any.
struct Band {
  std::string place = {};    ///< "below", "within" or "above" the middle half
  double low = 0, high = 0;  ///< the middle half of the shares that were not used
  std::size_t projects = 0;  ///< never less than kLeastProjects
};
inline constexpr std::size_t kLeastProjects = 5;

/// The month of a user or a project against the months before. It does not rank users. Unknown
/// values are absent, never 0.
struct Digest {
  std::string user = {}, project = {};     ///< one of them is empty
  std::vector<std::string> clusters = {};  ///< empty: all
  bool so_far = false;                     ///< the month has not ended
  bool band_only = false;                  ///< the caller sees the band only
  std::vector<MonthOfUse> months = {};     ///< the month, then earlier ones that are known
  std::string method = {};  ///< "measured", "modelled" or "partly_modelled"; empty: not known
  Number modelled_share = {};
  std::vector<std::string> unmeasured = {};   ///< clusters of which no energy is known
  Number kwh_change = {}, hours_change = {};  ///< as a share of the month before
  std::optional<Improvement> improvement = {};
  std::optional<Band> band = {};
  std::vector<RepeatedFinding> suggestions = {};  ///< the most useful first
};

/// Rounds all numbers to the digits that are shown.
void round_digest(Digest& digest);

/// Removes everything but the month and where the project stands.
void keep_band(Digest& digest);

// The forms of a rounded digest show the same digits. At most advice::kMaxShown suggestions.

/// One object, as docs/api/endpoints.md describes it.
std::string to_json(const Digest& digest, const View& view);
std::string to_text(const Digest& digest, const View& view);
std::string to_markdown(const Digest& digest, const View& view);
std::string to_html(const Digest& digest, const View& view);

}  // namespace ceems::report
