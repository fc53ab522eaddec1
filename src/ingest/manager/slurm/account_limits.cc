#include "ingest/manager/slurm/account_limits.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "ingest/manager/slurm/limits.h"

namespace ceems::ingest {
namespace {

constexpr std::size_t kMaxQos = 10'000;
constexpr std::size_t kMaxAssociations = 200'000;
constexpr std::size_t kMaxParents = 100;

/// The resources that are limited, one by one.
constexpr std::array kResources{&Allocation::nodes, &Allocation::cpus, &Allocation::memory_bytes,
                                &Allocation::gpus};

Allocation limits_in(std::string_view text) {
  return parse_alloc_tres(text, MemoryRule::kExact);
}

/// The smaller limit of two; 0 is none.
std::int64_t stricter(std::int64_t a, std::int64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

Allocation stricter(Allocation a, const Allocation& b) {
  for (const auto resource : kResources) {
    a.*resource = stricter(a.*resource, b.*resource);
  }
  return a;
}

void add_first(Allocation& first, const Allocation& next) {
  for (const auto resource : kResources) {
    if (first.*resource == 0) {
      first.*resource = next.*resource;
    }
  }
}

bool is_empty(const Allocation& limits) {
  return std::ranges::all_of(kResources,
                             [&](const auto resource) { return limits.*resource == 0; });
}

bool has_flag(std::string_view flags, std::string_view flag) {
  const auto all = split(flags, ',');
  return std::ranges::find(all, flag) != all.end();
}

void bound(std::optional<std::int64_t>& known, std::int64_t limit) {
  if (limit > 0) {
    known = known ? std::min(*known, limit) : limit;
  }
}

/// How long a job with this allocation may run, in whole minutes, because SLURM rounds a time up.
std::int64_t seconds_of(const Allocation& minutes, const Allocation& allocation) {
  std::int64_t least = 0;
  for (const auto resource : {&Allocation::nodes, &Allocation::cpus, &Allocation::gpus}) {
    if (minutes.*resource > 0 && allocation.*resource > 0) {
      least =
          stricter(least, std::max<std::int64_t>(minutes.*resource / (allocation.*resource), 1));
    }
  }
  return least * 60;
}

}  // namespace

void AccountLimits::Limits::add(const Limits& next) {
  add_first(job, next.job);
  add_first(node, next.node);
  add_first(minutes, next.minutes);
  add_first(group, next.group);
  add_first(people, next.people);
  add_first(least, next.least);
  seconds = seconds == 0 ? next.seconds : seconds;
}

void AccountLimits::add_qos_line(std::string_view line) {
  constexpr std::size_t kFields = 10;
  const auto fields = split(line, '|');
  if (fields.size() != kFields || fields[0].empty() || qos_.size() >= kMaxQos) {
    return;
  }
  const Limits limits{.job = limits_in(fields[2]),
                      .node = limits_in(fields[3]),
                      .minutes = limits_in(fields[4]),
                      .group = limits_in(fields[8]),
                      .people = stricter(limits_in(fields[6]), limits_in(fields[7])),
                      .least = limits_in(fields[9]),
                      .seconds = slurm_time_limit(fields[5]).value_or(0)};
  qos_.insert_or_assign(std::string(fields[0]),
                        Qos{.limits = limits,
                            .over_partition_qos = has_flag(fields[1], "OverPartQOS"),
                            .over_partition_time = has_flag(fields[1], "PartitionTimeLimit")});
}

void AccountLimits::add_association_line(std::string_view line) {
  constexpr std::size_t kFields = 9;
  const auto fields = split(line, '|');
  if (fields.size() != kFields || fields[0].empty() || associations_.size() >= kMaxAssociations) {
    return;
  }
  const Limits limits{.job = limits_in(fields[4]),
                      .node = limits_in(fields[5]),
                      .minutes = limits_in(fields[6]),
                      .group = limits_in(fields[8]),
                      .seconds = slurm_time_limit(fields[7]).value_or(0)};
  const bool has_limits = !is_empty(limits.job) || !is_empty(limits.node) ||
                          !is_empty(limits.minutes) || !is_empty(limits.group) ||
                          limits.seconds > 0;
  const std::string_view parent = fields[1].empty() ? fields[3] : fields[0];
  // Most users have none of their own, and their account is known from the job.
  if (fields[1].empty() || !fields[2].empty() || has_limits) {
    associations_.insert_or_assign(fmt::format("{}|{}|{}", fields[0], fields[1], fields[2]),
                                   Association{.parent = std::string(parent), .limits = limits});
  }
}

const AccountLimits::Qos* AccountLimits::qos_of(const std::string& name) const {
  const auto found = qos_.find(name);
  return found == qos_.end() ? nullptr : &found->second;
}

std::vector<const AccountLimits::Association*> AccountLimits::chain_of(const SlurmJob& job) const {
  std::vector<const Association*> chain;
  auto found = associations_.find(fmt::format("{}|{}|{}", job.account, job.user, job.partition));
  if (found == associations_.end()) {
    found = associations_.find(fmt::format("{}|{}|", job.account, job.user));
  }
  if (found == associations_.end()) {
    found = associations_.find(fmt::format("{}||", job.account));
  }
  while (found != associations_.end() && chain.size() < kMaxParents) {
    chain.push_back(&found->second);
    found = associations_.find(fmt::format("{}||", found->second.parent));
  }
  return chain;
}

void AccountLimits::set(SlurmJob& job, const std::string& partition_qos) const {
  Limits limits;
  const Qos* const own = qos_of(job.qos);
  const Qos* const of_partition = qos_of(partition_qos);
  const bool own_first = own != nullptr && own->over_partition_qos;
  for (const Qos* const qos : {own_first ? own : of_partition, own_first ? of_partition : own}) {
    if (qos != nullptr) {
      limits.add(qos->limits);
    }
  }
  Limits associations;
  Allocation groups;  // all that a job belongs to limit it
  for (const Association* const one : chain_of(job)) {
    groups = stricter(groups, one->limits.group);
    associations.add(one->limits);
  }
  associations.group = groups;
  limits.add(associations);

  SlurmDetails& details = job.details;
  const std::int64_t seconds = stricter(limits.seconds, seconds_of(limits.minutes, job.allocation));
  if (own != nullptr && own->over_partition_time) {
    details.partition_seconds = seconds;
  } else if (seconds > 0) {
    details.partition_seconds = stricter(details.partition_seconds.value_or(0), seconds);
  }
  const Allocation all = stricter(stricter(limits.job, limits.group), limits.people);
  const std::int64_t nodes = std::max<std::int64_t>(job.allocation.nodes, 1);
  const std::int64_t memory = stricter(limits.node.memory_bytes, all.memory_bytes / nodes);
  bound(details.partition_bytes ? details.partition_bytes : details.partition_max_bytes, memory);
  bound(details.partition_cpus, limits.node.cpus);
  details.partition_min_nodes =
      std::max(details.partition_min_nodes.value_or(0), limits.least.nodes);
  if (details.partition_min_nodes == 0) {
    details.partition_min_nodes.reset();
  }
}

}  // namespace ceems::ingest
