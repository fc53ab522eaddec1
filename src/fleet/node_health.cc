#include "fleet/node_health.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <ranges>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/statistics.h"
#include "base/time/durations.h"
#include "fleet/robust.h"

namespace ceems::fleet {
namespace {

constexpr double kLeastDrift = 0.05;
constexpr std::size_t kDriftUsers = 3;
constexpr double kDriftChance = 0.001;
/// Of a thousand nodes that are judged each day, a score of 3.5 would make some outliers by chance.
constexpr double kOutlierOfMany = 5;
constexpr std::size_t kStepNodes = 3;
constexpr double kStepShare = 0.1;  // of the class
constexpr std::int64_t kStepMs = 24 * kHourMs;

constexpr std::size_t kFailedJobs = 3;
constexpr std::size_t kFailedUsers = 2;
/// One user's broken program fails often wherever it runs.
constexpr std::size_t kFailuresOfUser = 3;
constexpr double kFailureChance = 0.00003;

constexpr int kDriftScore = 40;
constexpr int kFailureScore = 50;
constexpr int kMaxScore = 100;

struct SignKind {
  std::string_view name;
  int score;
  std::string_view text;  ///< `{}` is the number
};
/// In the order of HardSign.
constexpr std::array<SignKind, kHardSigns> kSignKinds{{
    {"lost_gpu", 60, "{} GPUs lost"},
    {"ecc", 50, "{} uncorrected memory errors"},
    {"xid", 40, "{} Xid errors of the hardware"},
    {"link", 10, "{} link errors"},
    {"throttle", 10, "throttled for {} s"},
}};
/// Less throttling than this in a day is none.
constexpr double kLeastThrottleS = 600;
constexpr double kLeastLinkErrors = 10;

double least_of(HardSign sign) {
  return sign == HardSign::kThrottle ? kLeastThrottleS
         : sign == HardSign::kLink   ? kLeastLinkErrors
                                     : 0.5;  // increases are extrapolated
}

/// Away from what it was before and from the peers: a node that was repaired is not.
bool changed(const NodeDrift& drift) {
  if (!drift.before) {
    return false;
  }
  const double change = drift.effect - *drift.before;
  return std::abs(change) > kLeastDrift &&
         (change > 0 ? drift.effect : -drift.effect) > kLeastDrift / 2;
}

/// Before it is compared with the class.
bool is_shifted(const NodeDrift& drift) {
  return (changed(drift) || std::abs(drift.effect) > kLeastDrift) && drift.users >= kDriftUsers &&
         drift.p < kDriftChance;
}

/// The end of the first job from which on the effects are rather shifted than not: where the sum
/// of +1 for a shifted and −1 for another job, from there to the last one, is largest.
std::int64_t first_shifted(std::span<const EffectOfJob* const> by_time, double from, double to) {
  int sum = 0;
  int best = 0;
  std::int64_t first = by_time.empty() ? 0 : by_time.back()->ended_ms;
  for (const EffectOfJob* job : by_time | std::views::reverse) {
    sum += (job->effect - from) / (to - from) > 1.0 / 2 ? 1 : -1;
    if (sum > best) {
      best = sum;
      first = job->ended_ms;
    }
  }
  return first;
}

double median_effect(std::span<const EffectOfJob* const> jobs) {
  std::vector<double> effects;
  effects.reserve(jobs.size());
  std::ranges::transform(jobs, std::back_inserter(effects), &EffectOfJob::effect);
  return median_of(effects);
}

/// Whether or not it is a drift; nothing with too few jobs.
std::optional<NodeDrift> drift_of(const NodeHistory& node) {
  std::vector<const EffectOfJob*> jobs;
  jobs.reserve(node.effects.size());
  for (const EffectOfJob& job : node.effects) {
    if (std::isfinite(job.effect)) {
      jobs.push_back(&job);
    }
  }
  if (jobs.size() < kLeastEffectJobs) {
    return std::nullopt;
  }
  std::ranges::stable_sort(jobs, {}, &EffectOfJob::ended_ms);
  const auto all = std::span<const EffectOfJob* const>(jobs);
  const auto last = all.last(std::min(all.size(), kEffectJobs));
  const std::size_t earlier = std::min(all.size() - last.size(), kEffectJobs);
  NodeDrift drift{.effect = median_effect(last), .n = last.size()};
  if (earlier >= kLeastEarlierJobs) {
    drift.before = median_effect(all.first(earlier));
  }
  const double from = changed(drift) ? drift.before.value_or(0) : 0;
  std::set<std::string_view> users;
  int above = 0;
  int below = 0;
  for (const EffectOfJob* job : last) {
    users.insert(job->user);
    above += job->effect > from ? 1 : 0;
    below += job->effect < from ? 1 : 0;
  }
  drift.users = users.size();
  drift.p = sign_test(above, above + below);
  drift.first_ms = first_shifted(all, from, drift.effect);
  return drift;
}

/// P(X ≥ `least`) of a binomial distribution.
double binomial_tail(std::size_t least, std::size_t n, double rate) {
  if (least == 0) {
    return 1;
  }
  double tail = 0;
  const auto all = static_cast<double>(n);
  for (std::size_t k = least; k <= n; ++k) {
    const auto some = static_cast<double>(k);
    tail += std::exp(std::lgamma(all + 1) - std::lgamma(some + 1) - std::lgamma(all - some + 1) +
                     some * std::log(rate) + (all - some) * std::log1p(-rate));
  }
  return std::min(1.0, tail);
}

NodeFailures failures_of(const NodeHistory& node) {
  std::vector<const JobOnNode*> last;
  last.reserve(node.jobs.size());
  for (const JobOnNode& job : node.jobs) {
    last.push_back(&job);
  }
  std::ranges::stable_sort(last, std::ranges::greater(), &JobOnNode::ended_ms);
  last.resize(std::min(last.size(), kFailureJobs));
  NodeFailures failures{.jobs = last.size()};
  std::map<std::string_view, std::size_t> by_user;
  for (const JobOnNode* job : last) {
    if (!job->unexplained) {
      continue;
    }
    failures.failed += ++by_user[job->user] <= kFailuresOfUser ? 1 : 0;
    failures.first_ms = job->ended_ms;  // the last of these is the first that ended
  }
  failures.users = by_user.size();
  return failures;
}

struct Judged {
  const NodeHistory* node = nullptr;
  NodeDrift drift = {};  ///< also if it is none
  bool known = false;    ///< there are enough jobs for that
  bool drifts = false;
  NodeFailures failures = {};
  bool fails = false;
};

/// Nodes that drift the same way from the same day on become a step.
void take_steps(std::vector<Judged*>& shifted,
                std::size_t nodes_of_class,
                std::vector<ClassStep>& steps) {
  std::ranges::stable_sort(shifted, {}, [](const Judged* one) { return one->drift.first_ms; });
  const auto enough = std::max<std::size_t>(
      kStepNodes,
      static_cast<std::size_t>(std::ceil(kStepShare * static_cast<double>(nodes_of_class))));
  for (const bool more : {true, false}) {
    std::vector<Judged*> same;
    std::ranges::copy_if(shifted, std::back_inserter(same), [more](const Judged* one) {
      return one->drifts && (one->drift.effect > 0) == more;
    });
    for (std::size_t begin = 0; begin < same.size();) {
      const std::int64_t first_ms = same[begin]->drift.first_ms;
      std::size_t end = begin;
      while (end < same.size() && same[end]->drift.first_ms - first_ms < kStepMs) {
        ++end;
      }
      if (end - begin < enough) {
        ++begin;
        continue;
      }
      ClassStep step{.node_class = same[begin]->node->node_class, .first_ms = first_ms};
      std::vector<double> effects;
      for (std::size_t i = begin; i < end; ++i) {
        same[i]->drifts = false;
        effects.push_back(same[i]->drift.effect);
        step.nodes.push_back(same[i]->node->node);
      }
      step.effect = median_of(effects);
      std::ranges::sort(step.nodes);
      steps.push_back(std::move(step));
      begin = end;
    }
  }
}

void judge_drift(std::vector<Judged>& of_class, std::vector<ClassStep>& steps) {
  std::vector<Judged*> shifted;
  for (Judged& one : of_class) {
    if (const auto drift = drift_of(*one.node)) {
      one.drift = *drift;
      one.known = true;
    }
    one.drifts = one.known && is_shifted(one.drift);
    if (one.drifts) {
      shifted.push_back(&one);
    }
  }
  take_steps(shifted, of_class.size(), steps);
  std::vector<double> effects;
  for (const Judged& one : of_class) {
    const bool stepped = !one.drifts && one.known && is_shifted(one.drift);
    if (one.known && !stepped) {
      effects.push_back(one.drift.effect);
    }
  }
  const auto peers = statistics_of(effects);
  const bool known = peers && effects.size() >= kLeastPeers;
  for (Judged& one : of_class) {
    one.drifts =
        one.drifts && (changed(one.drift) ||
                       (known && std::abs(modified_z(one.drift.effect, *peers)) > kOutlierOfMany));
  }
}

void judge_failures(std::vector<Judged>& of_class) {
  std::size_t jobs = 0, failed = 0;
  for (Judged& one : of_class) {
    one.failures = failures_of(*one.node);
    jobs += one.failures.jobs;
    failed += one.failures.failed;
  }
  for (Judged& one : of_class) {
    NodeFailures& own = one.failures;
    // The rule of succession: a class without failures so far does not have the rate 0.
    own.rate_of_class =
        static_cast<double>(failed - own.failed + 1) / static_cast<double>(jobs - own.jobs + 2);
    own.p = binomial_tail(own.failed, own.jobs, own.rate_of_class);
    one.fails = own.failed >= kFailedJobs && own.users >= kFailedUsers && own.p < kFailureChance;
  }
}

/// The reason of the suggested line, in ASCII.
std::string reason_of(const SickNode& node) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  for (const auto& [sign, count] : node.signs) {
    add(fmt::format(fmt::runtime(kSignKinds[static_cast<std::size_t>(sign)].text),
                    std::llround(count)));
  }
  if (node.failures) {
    add(fmt::format("{} of {} jobs failed, of {} users", node.failures->failed, node.failures->jobs,
                    node.failures->users));
  }
  if (node.drift) {
    add(fmt::format("draws {:.1f} % {} than its peers in {} jobs of {} users",
                    100 * std::abs(std::expm1(node.drift->effect)),
                    node.drift->effect > 0 ? "more" : "less", node.drift->n, node.drift->users));
  }
  return text;
}

std::optional<SickNode> finding_of(const Judged& judged) {
  SickNode sick{.node = judged.node->node, .node_class = judged.node->node_class};
  if (judged.drifts) {
    sick.drift = judged.drift;
    sick.score += kDriftScore;
  }
  if (judged.fails) {
    sick.failures = judged.failures;
    sick.score += kFailureScore;
  }
  for (std::size_t i = 0; i < kHardSigns; ++i) {
    const auto sign = static_cast<HardSign>(i);
    const double count = judged.node->signs[i];
    if (std::isfinite(count) && count >= least_of(sign)) {
      sick.signs.emplace_back(sign, count);
      sick.score += kSignKinds[i].score;
    }
  }
  if (sick.score < kLeastScore) {
    return std::nullopt;
  }
  sick.score = std::min(sick.score, kMaxScore);
  sick.suggested = drain_line(sick.node, "ceems: " + reason_of(sick));
  return sick;
}

}  // namespace

std::string_view name_of(HardSign sign) {
  return kSignKinds[static_cast<std::size_t>(sign)].name;
}

std::vector<PowerEffect> power_effects(std::span<const NodePower> nodes) {
  std::map<std::string_view, std::vector<double>> by_class;
  const auto counts = [](const NodePower& node) {
    return std::isfinite(node.watts) && node.watts > 0;
  };
  for (const NodePower& node : nodes) {
    if (counts(node)) {
      by_class[node.node_class].push_back(node.watts);
    }
  }
  std::vector<PowerEffect> effects;
  for (const NodePower& node : nodes) {
    const auto found = by_class.find(node.node_class);
    if (counts(node) && found->second.size() >= kLeastPeers) {
      effects.push_back(
          {.node = node.node, .effect = std::log(node.watts / median_of(found->second))});
    }
  }
  return effects;
}

FleetHealth judge_nodes(std::span<const NodeHistory> nodes) {
  std::map<std::string_view, std::vector<Judged>> classes;
  for (const NodeHistory& node : nodes) {
    classes[node.node_class].push_back({.node = &node});
  }
  FleetHealth health;
  for (auto& [name, of_class] : classes) {
    if (of_class.size() < kLeastPeers) {
      health.small_classes.emplace_back(name);
    } else {
      judge_drift(of_class, health.steps);
      judge_failures(of_class);
    }
    for (const Judged& judged : of_class) {
      if (auto sick = finding_of(judged)) {
        health.nodes.push_back(std::move(*sick));
      }
    }
  }
  std::ranges::stable_sort(health.nodes, [](const SickNode& a, const SickNode& b) {
    return a.score != b.score ? a.score > b.score : a.node < b.node;
  });
  return health;
}

std::string drain_line(std::string_view node, std::string_view reason) {
  constexpr std::size_t kMaxName = 253;
  static constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  if (node.empty() || node.size() > kMaxName ||
      !std::ranges::all_of(
          node,
          [](char c) { return kLetters.contains(c) || std::string_view("-._").contains(c); }) ||
      !kLetters.contains(node.front())) {
    return {};
  }
  std::string quoted;
  for (const char c : reason) {  // what a shell could take for more than a letter is left out
    if (kLetters.contains(c) || std::string_view(" -._:;,%/()").contains(c)) {
      quoted += c;
    }
  }
  return fmt::format("scontrol update nodename={} state=drain reason=\"{}\"", node, quoted);
}

}  // namespace ceems::fleet
