#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "advice/dialect.h"
#include "advice/expression.h"
#include "base/result.h"
#include "config/yaml.h"

namespace ceems::advice {

/// How much a finding matters. kGood is praise.
enum class Severity : std::uint8_t { kGood, kInfo, kSuggest, kImportant };
std::string_view to_string(Severity severity);

/// What a rule rests on.
enum class Basis : std::uint8_t {
  kMeasured,    ///< needs a coverage of at least kCoverage
  kAccounting,  ///< state, times and requests only: not said when a known coverage is too low
  kNodeLost,    ///< said only when the coverage is too low
};

/// How a later request differs that follows the suggestion, which shows whether it helped
/// (report/helped.h).
enum class Suggests : std::uint8_t {
  kNothing,  ///< that a request could show
  kLessCpus,
  kLessMemory,  ///< on a node
  kLessGpus,
  kLessNodes,
  kLessTime,
  kMoreMemory,
  kMoreTime,
};

/// The share of the node time that must be covered by measurements before a rule may say anything.
inline constexpr double kCoverage = 0.9;
/// Shorter runs get no advice, in seconds.
inline constexpr double kShortestRun = 300;

/// A name, for texts and command lines of a finding, and the expression behind it.
using Named = std::pair<std::string, Expression>;

/// Lines to type for one manager: templates, of which one with an unknown value is left out. What
/// stood there before has the same place in `was`, which may be shorter.
struct LineTemplates {
  std::vector<std::string> type = {}, was = {};
};

/// One rule, as its YAML says (docs/report.md). Expressions see facts, `limit.NAME`, and the names
/// of `let`, each of which sees those before it.
struct Rule {
  std::string id = {};
  bool enabled = true;
  Basis basis = Basis::kMeasured;
  std::vector<std::string> needs = {};                     ///< facts without which it is skipped
  std::map<std::string, double, std::less<>> limits = {};  ///< what a site may change
  std::vector<Named> let = {};
  Expression when = {};
  std::optional<Expression> unless = {};     ///< unknown counts as true: nothing is said
  std::optional<Expression> clear = {};      ///< this run alone leaves no doubt
  std::optional<Expression> important = {};  ///< raises the severity
  Severity severity = Severity::kSuggest;
  Suggests suggests = Suggests::kNothing;
  bool alone = false;                        ///< said only if no other rule has something to say
  bool sessions = false;                     ///< also said of a person's session
  std::vector<std::string> instead_of = {};  ///< rules that are not said beside it
  std::string say = {};                      ///< key of the message catalogue; default: the id
  std::map<std::string, std::string, std::less<>> texts = {};  ///< a site's own, by language
  std::array<LineTemplates, kDialects.size()> lines = {};      ///< in the order of kDialects
  std::optional<Expression> saves_kwh = {};
};

struct RuleSet {
  std::vector<Rule> rules = {};
  std::vector<std::string> ignore_qos = {};  ///< jobs of these get no advice
  /// What sessions of people are known by: name=, partition= and qos= with a pattern, in which `*`
  /// stands for any text, and submit= with the command and options that start one.
  std::vector<std::string> sessions = {};

  [[nodiscard]] const Rule* find(std::string_view id) const;
};

/// The names of all facts, sorted.
std::span<const std::string_view> fact_names();

/// Adds the rules of a YAML file to `base`. A rule whose id is known changes what the file names of
/// it. kInvalidArgument "file:line: where: message" for unknown keys, names that no fact has,
/// malformed expressions and templates, and rules without condition or text.
Result<RuleSet> add_rules(RuleSet base, std::string_view text, std::string_view file);

/// Adds the rule of a document as core_documents() has them (rule_files.h). Errors are as above.
Result<RuleSet> add_carried_rule(RuleSet base, const config::Node& document);

/// The rules that the program carries. Aborts if they are malformed, which a test excludes.
const RuleSet& core_rules();

/// core_rules() with the files *.yml of a directory, in the order of their names. A directory that
/// does not exist has none. Passes on errors of add_rules() and of reading.
Result<RuleSet> load_rules(const std::string& directory);

}  // namespace ceems::advice
