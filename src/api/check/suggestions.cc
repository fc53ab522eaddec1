#include "api/check/suggestions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <boost/json.hpp>

#include "access/lists.h"
#include "advice/dialect.h"
#include "advice/judge.h"
#include "api/report/json_object.h"
#include "api/report/requests.h"
#include "api/report/slurm_request.h"
#include "base/statistics.h"
#include "base/time/durations.h"
#include "report/family.h"
#include "store/advice_rules.h"

namespace ceems::api {
namespace {

using report::Number;

constexpr std::size_t kWindow = 8;         // runs with a report that are looked at
constexpr std::size_t kMaxFindings = 200;  // of these

/// The facts of a request: its size and form, and how long the family runs.
advice::Facts facts_of_request(const JobRequest& request,
                               std::string_view manager,
                               const std::vector<store::FamilyRun>& family) {
  const StoredUnit unit = unit_of(request, manager);
  advice::Facts facts;
  const auto set = [&facts](std::string_view name, const Number& value) {
    if (value) {
      facts.set(name, *value);
    }
  };
  const double nodes = std::max(request.nodes.value_or(1), 1.0);
  facts.set("alloc.nodes", nodes);
  set("alloc.cpus", request.cpus);
  facts.set("alloc.gpus", request.gpus.value_or(0));
  if (request.cpus) {
    facts.set("alloc.cpus_per_node", *request.cpus / nodes);
  }
  if (request.gpus && request.wants_gpus()) {
    facts.set("gpu.per_node", *request.gpus / nodes);
  }
  if (request.memory) {
    facts.set("mem.alloc_node", *request.memory / nodes);
    if (request.cpus) {
      facts.set("alloc.mem_per_cpu", *request.memory / *request.cpus);
    }
  }
  set("limit", request.time_limit);
  add_requests(unit, facts);
  add_slurm_request(unit, facts);
  const store::FamilyRun& last = family.front();
  set("mem.peak_node_max", last.numbers.mem_peak);
  set("cpu.used_max", last.numbers.cpu_used_max);
  std::vector<double> runtimes;
  for (std::size_t i = 0; i < family.size() && i < report::kMaxFamily; ++i) {
    runtimes.push_back(static_cast<double>(family[i].ended_at_ts - family[i].key.started_at_ts) /
                       static_cast<double>(kSecondMs));
  }
  facts.set("family.n", static_cast<double>(runtimes.size()));
  facts.set("runtime", runtimes.front());
  if (const auto runtime = statistics_of(runtimes)) {
    facts.set("family.runtime_p95", runtime->p95);
    facts.set("family.runtime_max", runtime->max);
  }
  return facts;
}

advice::NumbersByName numbers_in(std::string_view text) {
  advice::NumbersByName numbers;
  for (const auto& member : object_of(text)) {
    if (member.value().is_number()) {
      numbers.emplace(std::string(member.key().data(), member.key().size()),
                      member.value().to_number<double>());
    }
  }
  return numbers;
}

Number number_in(const advice::NumbersByName& numbers, const char* name) {
  const auto found = numbers.find(name);
  return found == numbers.end() ? std::nullopt : Number(found->second);
}

/// What was asked for, in the words of rules about memory and time.
Number asked_in(const advice::NumbersByName& numbers) {
  const Number reserved = number_in(numbers, "reserved");
  return reserved ? reserved : number_in(numbers, "asked");
}

/// Whether the request already is as the rule would have it: no more than it suggests where the
/// earlier run asked for more, and no less where that asked for less.
bool is_followed(const advice::Finding& said, const advice::NumbersByName& found) {
  const Number want = number_in(found, "want");
  const Number asked = asked_in(found);
  const Number asks = asked_in(said.values);
  if (want && asks && asked) {
    return *asked > *want ? *asks <= *want : *asks >= *want;
  }
  return !said.lines.empty() && std::ranges::all_of(said.lines, [](const advice::Line& line) {
    return !line.was.empty() && line.type.ends_with(line.was);
  });
}

/// A line without what is in front of it in a script.
std::string bare(std::string_view line, std::string_view manager) {
  const auto* const dialect =
      std::ranges::find(advice::kDialects, manager, &advice::Dialect::manager);
  if (dialect != advice::kDialects.end() && line.starts_with(dialect->prefix)) {
    line.remove_prefix(dialect->prefix.size());
  }
  return std::string(line);
}

/// What the runs have in common of one rule.
struct Seen {
  store::FindingRow newest = {};
  std::set<store::ReportKey> runs = {};
  std::vector<double> saves = {};
};

}  // namespace

Result<std::vector<Suggestion>> suggest(store::Reader& reader,
                                        const access::Identity& identity,
                                        const advice::RuleSet& rules,
                                        const JobRequest& request,
                                        std::string_view manager,
                                        std::string_view language,
                                        const std::vector<store::FamilyRun>& family) {
  std::vector<Suggestion> all;
  store::FindingQuery query{.limit = kMaxFindings};
  std::set<store::ReportKey> measured;
  std::optional<store::ReportKey> newest;
  for (const store::FamilyRun& run : family) {
    if (run.measured && measured.size() < kWindow) {
      newest = newest ? newest : std::optional(run.key);
      measured.insert(run.key);
      query.filter.uuids.push_back(run.key.uuid);
    }
  }
  if (!newest) {
    return all;
  }
  query.filter.clusters = {request.cluster_id};
  query.filter.advice = store::any_advice();
  query.least_severity = static_cast<int>(advice::Severity::kInfo);
  access::list_own(identity, access::Part::kOwn, query.filter);
  CEEMS_TRY(findings, reader.findings(query));
  std::map<std::string, Seen> by_rule;
  for (store::UnitFinding& one : findings) {
    if (!measured.contains(one.key)) {
      continue;
    }
    Seen& seen = by_rule[one.finding.rule];
    if (one.finding.saves_kwh) {
      seen.saves.push_back(*one.finding.saves_kwh);
    }
    if (one.key == *newest) {
      seen.newest = std::move(one.finding);
    }
    seen.runs.insert(one.key);
  }
  const advice::Facts facts = facts_of_request(request, manager, family);
  std::vector<std::tuple<int, double, Suggestion>> found;
  for (auto& [id, seen] : by_rule) {
    const advice::Rule* const rule = rules.find(id);
    // What the last run no longer shows is done with; what few show is chance.
    if (rule == nullptr || !rule->enabled || seen.newest.rule.empty() ||
        2 * seen.runs.size() < measured.size()) {
      continue;
    }
    const auto numbers = numbers_in(seen.newest.numbers);
    const advice::Finding said = advice::say_again(*rule, numbers, facts, manager);
    const auto text = said.text.find(language);
    if (is_followed(said, numbers) || (text == said.text.end() && !said.text.contains("en"))) {
      continue;
    }
    Suggestion suggestion{.rule = id,
                          .text = text != said.text.end() ? text->second : said.text.at("en"),
                          .seen_in = seen.runs.size()};
    for (const advice::Line& line : said.lines) {
      suggestion.lines.push_back(bare(line.type, manager));
      suggestion.was.push_back(line.was);
    }
    if (const auto saves = statistics_of(seen.saves); saves && saves->median > 0) {
      suggestion.saves_kwh = saves->median;
    }
    found.emplace_back(seen.newest.severity, suggestion.saves_kwh.value_or(0),
                       std::move(suggestion));
  }
  std::ranges::stable_sort(found, std::ranges::greater(), [](const auto& one) {
    return std::pair(std::get<0>(one), std::get<1>(one));
  });
  for (auto& one : found) {
    all.push_back(std::move(std::get<2>(one)));
  }
  return all;
}

}  // namespace ceems::api
