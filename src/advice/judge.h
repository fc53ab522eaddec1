#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advice/catalogue.h"
#include "advice/rule.h"
#include "advice/value.h"

namespace ceems::advice {

/// How sure a finding is.
enum class Confidence : std::uint8_t {
  kMaybe,   ///< this run only
  kLikely,  ///< this run by a clear margin (Rule::clear)
  kSure,    ///< at least 5 of the last 8 runs of the family, this one included
};
std::string_view to_string(Confidence confidence);

/// A run to judge.
struct Case {
  Facts facts = {};
  std::string manager =
      {};  ///< decides whose lines are suggested; none for one without (dialect.h)
  /// Facts of earlier runs of the family, newest first. What `when` says of them decides how sure
  /// a finding is; facts of the family itself are among `facts`.
  std::vector<Facts> earlier = {};
};

/// A line of a job script: as it should be, and what stood there before.
struct Line {
  std::string type = {};  ///< complete: "#SBATCH --mem=10G"
  std::string was = {};   ///< "--mem=128G"; empty: not known

  bool operator==(const Line&) const = default;
};

/// Numbers of a finding by the name that `let` gives them.
using NumbersByName = std::map<std::string, double, std::less<>>;

/// What a rule has to say about a run.
struct Finding {
  std::string rule = {};
  Severity severity = Severity::kSuggest;
  Confidence confidence = Confidence::kMaybe;
  std::size_t runs = 1;  ///< of the last 8, in which it was true
  std::string say = {};
  /// The values of `let` that are known. Texts may also name facts.
  NumbersByName values = {};
  std::map<std::string, std::string, std::less<>> text = {};  ///< by language
  std::vector<Line> lines = {};
  std::optional<double> saves_kwh = {};
};

/// Whether the rule holds for these facts: nothing it needs is unknown, `unless` is known and
/// false, `when` is true.
bool holds(const Rule& rule, const Facts& facts);

/// All findings, the most useful first: by severity, by energy saved, by runs. The first three are
/// those to show. Nothing is said about a run that is shorter than kShortestRun, that is of an
/// ignored QOS, or that is not covered (Basis). A finding without a text in English is left out.
std::vector<Finding> judge(const RuleSet& rules, const Case& run);

/// What a rule says of a run that is still to be submitted: of the same job and size as a run in
/// which it found `found`. `request` has the facts of the new run that its request tells; the lines
/// are in its form.
Finding say_again(const Rule& rule,
                  const NumbersByName& found,
                  const Facts& request,
                  std::string_view manager);

inline constexpr std::size_t kMaxShown = 3;

}  // namespace ceems::advice
