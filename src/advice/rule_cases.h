#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "advice/rule_files.h"
#include "advice/test_runs.h"

// The cases in the files of data/advice/rules/: runs for which a rule has something to say.
//
//   cases:
//     - run: gpu                        cpu, gpu, two-nodes or server: what is changed
//     (test_runs.h)
//       first: true                     the first run of its family; default: false
//       said: {gpu.unused: 1}           changes with which the rule speaks
//       silent: [{gpu.unused: 0}]       further changes, with each of which it does not
//       text: {en: 1 of 4 GPUs}         how its text begins
//       lines: {slurm: ["#SBATCH --gres=gpu:3"]}
//       was: {slurm: ["--gres=gpu:4"]}  what stood there before, of as many lines
//
// A value is an expression over the run before the change, in which `gib` is 2^30; that of a fact
// which holds a text is a text.

namespace ceems::advice {

struct RuleCase {
  std::string rule = {};
  Facts said = {};
  std::vector<std::pair<std::string, Facts>> silent = {};  ///< by what was changed
  std::map<std::string, std::string> text = {};
  std::map<std::string, std::vector<std::string>> lines = {}, was = {};  ///< by manager
};

inline Facts run_named(std::string_view name) {
  const std::map<std::string_view, Facts> runs{{"cpu", cpu_run()},
                                               {"gpu", gpu_run()},
                                               {"two-nodes", two_nodes_run()},
                                               {"server", server_run()}};
  EXPECT_TRUE(runs.contains(name)) << name;
  return runs.contains(name) ? runs.at(name) : Facts();
}

/// The facts with what the mapping says.
inline Facts changed_by(const config::Node& changes, const Facts& facts) {
  Facts names = facts;
  names.set("gib", kGiB);
  Facts result = facts;
  for (const auto& [fact, node] : changes.entries()) {
    const std::string text = node.as_string().value_or("");
    if (std::holds_alternative<std::string_view>(facts.value_of(fact))) {
      result.set(fact, text);
      continue;
    }
    const auto expression = Expression::compile(text);
    const Value value = expression ? expression->evaluate(names) : Value();
    if (const double* number = std::get_if<double>(&value)) {
      result.set(fact, *number);
    } else if (const bool* truth = std::get_if<bool>(&value)) {
      result.set(fact, *truth);
    } else {
      ADD_FAILURE() << node.error("expected an expression with a value").message;
    }
  }
  return result;
}

inline RuleCase read_case(const std::string& rule, const config::Node& node) {
  const auto known = node.only_keys({"run", "first", "said", "silent", "text", "lines", "was"});
  EXPECT_TRUE(known) << known.error().message;
  RuleCase one{.rule = rule};
  one.said = changed_by(node["said"], run_named(node["run"].as_string().value_or("")));
  if (node["first"].present()) {
    one.said = first_run(one.said);
  }
  for (const config::Node& change : node["silent"].items()) {
    std::string what;
    for (const auto& [fact, value] : change.entries()) {
      what += fact + " = " + value.as_string().value_or("") + " ";
    }
    one.silent.emplace_back(what, changed_by(change, one.said));
  }
  for (const auto& [language, text] : node["text"].entries()) {
    one.text[language] = text.as_string().value_or("");
  }
  for (const auto& [manager, lines] : node["lines"].entries()) {
    one.lines[manager] = lines.as_string_list().value_or(std::vector<std::string>());
  }
  for (const auto& [manager, lines] : node["was"].entries()) {
    one.was[manager] = lines.as_string_list().value_or(std::vector<std::string>());
  }
  return one;
}

inline std::vector<RuleCase> cases_of(const config::Node& document) {
  const std::string rule = document["id"].as_string().value_or("");
  std::vector<RuleCase> cases;
  for (const config::Node& node : document["cases"].items()) {
    cases.push_back(read_case(rule, node));
  }
  EXPECT_FALSE(cases.empty()) << rule << " has no cases";
  return cases;
}

/// Of all rules that the program carries, in their order.
inline std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> all;
  for (const config::Node& document : core_documents()) {
    const auto cases = cases_of(document);
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

/// The rule speaks, says and suggests what the case expects, and is silent where it should be.
inline void expect_case(const RuleCase& one, const RuleSet& rules) {
  using ::testing::Contains;
  using ::testing::Not;
  EXPECT_THAT(rules_found(one.said, rules), Contains(one.rule));
  EXPECT_FALSE(one.silent.empty()) << one.rule;
  for (const auto& [change, facts] : one.silent) {
    EXPECT_THAT(rules_found(facts, rules), Not(Contains(one.rule))) << one.rule << ": " << change;
  }
  const auto found = [&](const std::string& manager) {
    auto findings = judge(rules, {.facts = one.said, .manager = manager, .earlier = {}});
    const auto place = std::ranges::find(findings, one.rule, &Finding::rule);
    return place == findings.end() ? Finding{} : std::move(*place);
  };
  for (const auto& [language, text] : one.text) {
    EXPECT_THAT(found("").text[language], ::testing::StartsWith(text)) << one.rule;
  }
  for (const auto& [manager, lines] : one.lines) {
    std::vector<std::string> types;
    std::vector<std::string> was;
    for (const Line& line : found(manager).lines) {
      types.push_back(line.type);
      was.push_back(line.was);
    }
    EXPECT_EQ(types, lines) << one.rule << " " << manager;
    if (const auto before = one.was.find(manager); before != one.was.end()) {
      EXPECT_EQ(was, before->second) << one.rule << " " << manager;
    }
  }
}

}  // namespace ceems::advice
