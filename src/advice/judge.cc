#include "advice/judge.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "advice/template.h"

namespace ceems::advice {
namespace {

constexpr std::size_t kWindow = 8;    // runs of the family that decide how sure a finding is
constexpr std::size_t kSureFrom = 5;  // of them

/// Whether a fact says how the run was asked for.
bool is_of_request(std::string_view fact) {
  return std::ranges::any_of(std::array{"slurm.", "pbs.", "k8s.", "queue."},
                             [fact](const char* prefix) { return fact.starts_with(prefix); });
}

/// Facts, the limits of a rule, and what `let` has worked out so far.
class RuleNames final : public Names {
 public:
  /// `found` are values of `let` in an earlier finding, or null. They stand for those that cannot
  /// be worked out, except where these depend on how the earlier run was asked for.
  RuleNames(const Rule& rule, const Facts& facts, const NumbersByName* found = nullptr)
      : rule_(rule), facts_(facts) {
    std::set<std::string_view> of_request;
    for (const auto& [name, expression] : rule.let) {
      Value value = expression.evaluate(*this);
      if (found != nullptr) {
        const auto names = expression.names();
        if (std::ranges::any_of(names, [&](const std::string& used) {
              return is_of_request(used) || of_request.contains(used);
            })) {
          of_request.insert(name);
        } else if (const auto known = found->find(name);
                   !is_known(value) && known != found->end()) {
          value = known->second;
        }
      }
      lets_.emplace(name, value);
    }
  }
  [[nodiscard]] Value value_of(std::string_view name) const override {
    constexpr std::string_view kLimit = "limit.";
    if (name.starts_with(kLimit)) {
      const auto limit = rule_.limits.find(name.substr(kLimit.size()));
      return limit == rule_.limits.end() ? Value() : Value(limit->second);
    }
    const auto found = lets_.find(name);
    return found == lets_.end() ? facts_.value_of(name) : found->second;
  }
  [[nodiscard]] const std::map<std::string, Value, std::less<>>& lets() const { return lets_; }

 private:
  const Rule& rule_;
  const Facts& facts_;
  std::map<std::string, Value, std::less<>> lets_;
};

bool has_needs(const Rule& rule, const Facts& facts) {
  return std::ranges::all_of(rule.needs,
                             [&](const auto& name) { return is_known(facts.value_of(name)); });
}

bool covered(const Rule& rule, const Facts& facts) {
  const Value coverage = facts.value_of("coverage");
  const double* share = std::get_if<double>(&coverage);
  switch (rule.basis) {
    case Basis::kMeasured:
      return share != nullptr && *share >= kCoverage;
    case Basis::kAccounting:
      return share == nullptr || *share >= kCoverage;
    case Basis::kNodeLost:
      return share != nullptr && *share < kCoverage;
  }
  return false;
}

bool may_be_judged(const RuleSet& rules, const Facts& facts) {
  const Value runtime = facts.value_of("runtime");
  const double* seconds = std::get_if<double>(&runtime);
  const Value qos = facts.value_of("qos");
  const auto* name = std::get_if<std::string_view>(&qos);
  return seconds != nullptr && *seconds >= kShortestRun &&
         (name == nullptr || std::ranges::find(rules.ignore_qos, *name) == rules.ignore_qos.end());
}

Confidence confidence_of(const Rule& rule, const RuleNames& names, std::size_t runs) {
  if (runs >= kSureFrom) {
    return Confidence::kSure;
  }
  return rule.clear && is_true(rule.clear->evaluate(names)) ? Confidence::kLikely
                                                            : Confidence::kMaybe;
}

/// In how many of the last runs the condition held.
std::size_t runs_with(const Rule& rule, const Case& run) {
  std::size_t runs = 1;
  for (std::size_t i = 0; i < run.earlier.size() && i + 1 < kWindow; ++i) {
    const Facts& facts = run.earlier[i];
    if (has_needs(rule, facts) && is_true(rule.when.evaluate(RuleNames(rule, facts)))) {
      ++runs;
    }
  }
  return runs;
}

/// The lines for users of the manager, without those in which a value is not known.
std::vector<Line> lines_of(const Rule& rule, std::string_view manager, const Names& names) {
  std::vector<Line> lines;
  const auto* const dialect = std::ranges::find(kDialects, manager, &Dialect::manager);
  if (dialect == kDialects.end()) {
    return lines;
  }
  const LineTemplates& templates = rule.lines.at(dialect - kDialects.begin());
  for (std::size_t i = 0; i < templates.type.size(); ++i) {
    if (const auto type = fill(templates.type[i], names)) {
      auto was = i < templates.was.size() ? fill(templates.was[i], names) : std::nullopt;
      lines.push_back({.type = std::string(dialect->prefix) + *type,
                       .was = std::move(was).value_or(std::string())});
    }
  }
  return lines;
}

/// What the rule says in each language that has words for it.
std::map<std::string, std::string, std::less<>> texts_of(const Rule& rule, const Names& names) {
  std::map<std::string, std::string, std::less<>> all;
  for (const std::string_view language : kLanguages) {
    const Catalogue& texts = catalogue(language);
    const auto own = rule.texts.find(language);
    const auto common = texts.advice.find(rule.say);
    if (own == rule.texts.end() && common == texts.advice.end()) {
      continue;
    }
    const std::string& text = own != rule.texts.end() ? own->second : common->second;
    if (auto filled = fill(text, names, texts.notation)) {
      all.emplace(language, std::move(*filled));
    }
  }
  return all;
}

NumbersByName numbers_of(const RuleNames& names) {
  NumbersByName numbers;
  for (const auto& [name, value] : names.lets()) {
    if (const double* number = std::get_if<double>(&value)) {
      numbers.emplace(name, *number);
    }
  }
  return numbers;
}

Finding finding_of(const Rule& rule, const Case& run) {
  const RuleNames names(rule, run.facts);
  Finding finding{.rule = rule.id, .severity = rule.severity, .say = rule.say};
  if (rule.important && is_true(rule.important->evaluate(names))) {
    finding.severity = Severity::kImportant;
  }
  finding.runs = runs_with(rule, run);
  finding.confidence = confidence_of(rule, names, finding.runs);
  // An accounting fact is certain as it stands. What one run shows by a small margin is not.
  if (rule.basis != Basis::kMeasured && !rule.clear) {
    finding.confidence = Confidence::kSure;
  }
  if (finding.confidence == Confidence::kMaybe && finding.severity > Severity::kInfo) {
    finding.severity = Severity::kInfo;
  }
  finding.values = numbers_of(names);
  finding.text = texts_of(rule, names);
  finding.lines = lines_of(rule, run.manager, names);
  if (rule.saves_kwh) {
    const Value saved = rule.saves_kwh->evaluate(names);
    if (const double* kwh = std::get_if<double>(&saved); kwh != nullptr && *kwh > 0) {
      finding.saves_kwh = *kwh;
    }
  }
  return finding;
}

/// What a line sets: "--mem", "-l select", "-n", "resources.limits.memory".
std::string_view option_of(std::string_view line) {
  const std::size_t end = std::min(line.find('='), line.find(": "));
  if (end != std::string_view::npos) {
    return line.substr(0, end);
  }
  return line.substr(0, line.rfind(' '));
}

/// Each finding has worked out its lines as if the others were not followed. Of those that set the
/// same option, only the first keeps its lines, all of which belong together.
void keep_first_lines(std::vector<Finding>& findings) {
  std::set<std::string, std::less<>> set;
  for (Finding& finding : findings) {
    if (std::ranges::any_of(finding.lines,
                            [&](const Line& line) { return set.contains(option_of(line.type)); })) {
      finding.lines.clear();
    }
    for (const Line& line : finding.lines) {
      set.emplace(option_of(line.type));
    }
  }
}

}  // namespace

std::string_view to_string(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "good";
    case Severity::kInfo:
      return "info";
    case Severity::kSuggest:
      return "suggest";
    case Severity::kImportant:
      break;
  }
  return "important";
}

std::string_view to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::kMaybe:
      return "maybe";
    case Confidence::kLikely:
      return "likely";
    case Confidence::kSure:
      break;
  }
  return "sure";
}

Finding say_again(const Rule& rule,
                  const NumbersByName& found,
                  const Facts& request,
                  std::string_view manager) {
  const RuleNames names(rule, request, &found);
  return {.rule = rule.id,
          .severity = rule.severity,
          .say = rule.say,
          .values = numbers_of(names),
          .text = texts_of(rule, names),
          .lines = lines_of(rule, manager, names)};
}

bool holds(const Rule& rule, const Facts& facts) {
  if (!rule.enabled || !has_needs(rule, facts)) {
    return false;
  }
  const RuleNames names(rule, facts);
  if (rule.unless) {
    const Value excused = rule.unless->evaluate(names);
    const bool* truth = std::get_if<bool>(&excused);
    if (truth == nullptr || *truth) {
      return false;
    }
  }
  return is_true(rule.when.evaluate(names));
}

std::vector<Finding> judge(const RuleSet& rules, const Case& run) {
  std::vector<Finding> findings;
  if (!may_be_judged(rules, run.facts)) {
    return findings;
  }
  const bool session = is_true(run.facts.value_of("interactive"));
  std::set<std::string_view> replaced;
  for (const bool alone : {false, true}) {
    if (alone && !findings.empty()) {
      break;
    }
    for (const Rule& rule : rules.rules) {
      if (session && !rule.sessions) {
        continue;
      }
      if (rule.alone == alone && covered(rule, run.facts) && holds(rule, run.facts)) {
        Finding finding = finding_of(rule, run);
        if (session) {
          finding.lines.clear();  // of a script, which a session has not
        }
        if (finding.text.contains(kLanguages.front())) {
          findings.push_back(std::move(finding));
          replaced.insert(rule.instead_of.begin(), rule.instead_of.end());
        }
      }
    }
  }
  std::erase_if(findings, [&](const Finding& finding) { return replaced.contains(finding.rule); });
  std::ranges::stable_sort(findings, std::ranges::greater(), [](const Finding& finding) {
    return std::tuple(finding.severity, finding.saves_kwh.value_or(0), finding.runs);
  });
  keep_first_lines(findings);
  return findings;
}

}  // namespace ceems::advice
