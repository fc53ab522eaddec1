#include "report/helped.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace ceems::report {
namespace {

using advice::Suggests;

constexpr double kGib = 1024.0 * 1024 * 1024;

/// What the rule is about.
std::optional<double> asked(const HelpedRequest& request, Suggests suggests) {
  switch (suggests) {
    case Suggests::kLessCpus:
      return request.cpus;
    case Suggests::kLessMemory:
    case Suggests::kMoreMemory:
      return request.memory && request.nodes && *request.nodes > 0
                 ? std::optional(*request.memory / *request.nodes)
                 : std::nullopt;
    case Suggests::kLessGpus:
      return request.gpus;
    case Suggests::kLessNodes:
      return request.nodes;
    case Suggests::kLessTime:
    case Suggests::kMoreTime:
      return request.time_limit;
    case Suggests::kNothing:
      break;
  }
  return std::nullopt;
}

bool asks_for_more(Suggests suggests) {
  return suggests == Suggests::kMoreMemory || suggests == Suggests::kMoreTime;
}

bool follows(const HelpedRequest& now, const HelpedRequest& before, Suggests suggests) {
  const auto value = asked(now, suggests);
  const auto other = asked(before, suggests);
  return value && other && (asks_for_more(suggests) ? *value > *other : *value < *other);
}

/// Whether less is reserved that can be unused.
bool saves_energy(Suggests suggests) {
  return suggests == Suggests::kLessCpus || suggests == Suggests::kLessMemory ||
         suggests == Suggests::kLessGpus || suggests == Suggests::kLessNodes;
}

/// How long a run took, and how long it would have taken before at most.
struct Hours {
  double now = 0, before = 0;
};

double saved(const std::optional<double>& now, const std::optional<double>& before, Hours hours) {
  return now && before ? *before * hours.before - *now * hours.now : 0;
}

}  // namespace

HelpedSum& HelpedSum::operator+=(const HelpedSum& other) {
  kinds += other.kinds;
  runs += other.runs;
  core_hours += other.core_hours;
  gpu_hours += other.gpu_hours;
  gib_hours += other.gib_hours;
  kwh += other.kwh;
  kwh_runs += other.kwh_runs;
  return *this;
}

void HelpedCounter::note(Suggestion& suggestion, const HelpedRun& run) {
  if (suggestion.followed) {  // no longer
    suggestion = {};
  }
  suggestion.last_ms = run.ended_ms;
  suggestion.request = run.request;
  if (run.hours) {
    suggestion.hours += *run.hours;
    ++suggestion.timed_runs;
  }
  if (run.not_used_kwh && run.hours) {
    suggestion.not_used_kwh += *run.not_used_kwh;
    suggestion.its_hours += *run.hours;
  }
}

void HelpedCounter::count(const HelpedRun& run,
                          Suggests suggests,
                          Suggestion& made,
                          double part) const {
  made.last_ms = run.ended_ms;
  made.followed = true;
  if (run.ended_ms < from_ms_) {
    return;
  }
  HelpedSum& sum = made.since;
  sum.kinds = 1;
  ++sum.runs;
  if (!run.hours || made.timed_runs == 0 || !saves_energy(suggests)) {
    return;
  }
  const Hours hours{.now = *run.hours,
                    .before = std::min(*run.hours, made.hours / made.timed_runs)};
  if (suggests == Suggests::kLessMemory) {
    sum.gib_hours += saved(run.request.memory, made.request.memory, hours) / kGib;
  } else if (suggests == Suggests::kLessGpus) {
    sum.gpu_hours += saved(run.request.gpus, made.request.gpus, hours);
  } else {
    sum.core_hours += saved(run.request.cpus, made.request.cpus, hours);
  }
  if (run.not_used_kwh && made.its_hours > 0) {
    sum.kwh += part * (made.not_used_kwh / made.its_hours * hours.before - *run.not_used_kwh);
    ++sum.kwh_runs;
  }
}

void HelpedCounter::add(const HelpedRun& run) {
  if (!run.judged) {
    return;
  }
  const bool advised = std::ranges::any_of(
      rules_, [&run](const HelpingRule& rule) { return (run.advice & rule.mask) != 0; });
  Kind key{.cluster = run.cluster, .user = run.user, .project = run.project, .name = run.name};
  auto kind = kinds_.find(key);
  if (kind == kinds_.end()) {
    if (!advised) {
      return;
    }
    kind = kinds_.try_emplace(std::move(key)).first;
  }
  std::vector<std::size_t> followed;
  std::size_t sharing = 0;  // of them, how many may have saved the energy
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if ((run.advice & rules_[i].mask) != 0) {
      note(kind->second[i], run);
      continue;
    }
    const auto made = kind->second.find(i);
    if (made != kind->second.end() && run.ended_ms - made->second.last_ms <= kHelpedMs &&
        follows(run.request, made->second.request, rules_[i].suggests)) {
      followed.push_back(i);
      sharing += saves_energy(rules_[i].suggests) ? 1 : 0;
    }
  }
  for (const std::size_t i : followed) {
    count(run, rules_[i].suggests, kind->second[i],
          sharing > 0 ? 1.0 / static_cast<double>(sharing) : 0);
  }
}

std::map<HelpedKey, HelpedSum> HelpedCounter::sums() const {
  std::map<HelpedKey, HelpedSum> sums;
  for (const auto& [kind, suggestions] : kinds_) {
    for (const auto& [rule, made] : suggestions) {
      if (made.since.runs > 0) {
        sums[{kind.cluster, kind.project, rules_[rule].id}] += made.since;
      }
    }
  }
  return sums;
}

}  // namespace ceems::report
