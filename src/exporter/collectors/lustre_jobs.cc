#include "exporter/collectors/lustre_jobs.h"

#include <iterator>
#include <limits>
#include <utility>

namespace ceems::exporter {
namespace {

struct LustreJobsOperationName {
  std::string_view name;
  LustreOperation operation;
};

/// Those that are not listed are `other`.
constexpr std::array kLustreJobsOperationNames{
    LustreJobsOperationName{"open", LustreOperation::kOpen},
    LustreJobsOperationName{"close", LustreOperation::kClose},
    LustreJobsOperationName{"getattr", LustreOperation::kGetattr},
    LustreJobsOperationName{"setattr", LustreOperation::kSetattr},
    LustreJobsOperationName{"create", LustreOperation::kCreate},
    LustreJobsOperationName{"mknod", LustreOperation::kCreate},
    LustreJobsOperationName{"mkdir", LustreOperation::kCreate},
    LustreJobsOperationName{"symlink", LustreOperation::kCreate},
    LustreJobsOperationName{"link", LustreOperation::kCreate},
    LustreJobsOperationName{"unlink", LustreOperation::kUnlink},
    LustreJobsOperationName{"rmdir", LustreOperation::kUnlink},
    LustreJobsOperationName{"destroy", LustreOperation::kUnlink},
    LustreJobsOperationName{"rename", LustreOperation::kRename},
    LustreJobsOperationName{"sync", LustreOperation::kSync}};

LustreOperation operation_of(std::string_view name) {
  for (const LustreJobsOperationName& row : kLustreJobsOperationNames) {
    if (row.name == name) {
      return row.operation;
    }
  }
  return LustreOperation::kOther;
}

/// Renames are listed a second time by kind.
bool is_kind_of_rename(std::string_view name) {
  return name.ends_with("_rename") || name.starts_with("parallel_rename");
}

void add_up(std::uint64_t& sum, std::uint64_t value) {
  constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
  sum = value > kMax - sum ? kMax : sum + value;
}

LustreJobValues values_of(const host::LustreJob& job) {
  LustreJobValues values;
  const auto operations = [&values](LustreOperation operation) -> std::uint64_t& {
    return values.operations.at(static_cast<std::size_t>(operation));
  };
  for (const host::LustreCount& count : job.counts) {
    if (count.name == "read_bytes") {
      add_up(values.read_bytes, count.sum.value_or(0));
      add_up(operations(LustreOperation::kRead), count.samples);
    } else if (count.name == "write_bytes") {
      add_up(values.write_bytes, count.sum.value_or(0));
      add_up(operations(LustreOperation::kWrite), count.samples);
    } else if (!is_kind_of_rename(count.name)) {
      if (count.name != "read" && count.name != "write") {  // the same requests, with their times
        add_up(operations(operation_of(count.name)), count.samples);
      }
      if (host::is_lustre_time(count.unit)) {
        add_up(values.microseconds, count.sum.value_or(0));
      }
    }
  }
  return values;
}

/// Adds the increase from `last` to `now`. Less than before means that the list began anew.
void add_increase(std::uint64_t& sum, std::uint64_t now, std::uint64_t last) {
  add_up(sum, now >= last ? now - last : now);
}

void add_increase(LustreJobValues& sum, const LustreJobValues& now, const LustreJobValues& last) {
  add_increase(sum.read_bytes, now.read_bytes, last.read_bytes);
  add_increase(sum.write_bytes, now.write_bytes, last.write_bytes);
  add_increase(sum.microseconds, now.microseconds, last.microseconds);
  for (std::size_t i = 0; i < sum.operations.size(); ++i) {
    add_increase(sum.operations.at(i), now.operations.at(i), last.operations.at(i));
  }
}

constexpr std::string_view kOther = "other";

}  // namespace

LustreJobs::LustreJobs(std::size_t max_jobs, std::unique_ptr<const RE2> unit)
    : max_jobs_(max_jobs), unit_(std::move(unit)) {}

void LustreJobs::begin() {
  ++round_;
  not_counted_ = 0;
}

LustreJobs::Group* LustreJobs::group_of(const host::LustreTarget& target, std::string_view id) {
  if (!host::is_lustre_job_id(id) || id == kOther) {
    return nullptr;
  }
  re2::StringPiece number;
  const bool is_unit = RE2::FullMatch(re2::StringPiece(id.data(), id.size()), *unit_, &number);
  const std::string_view unit =
      is_unit ? std::string_view(number.data(), number.size()) : std::string_view();
  const std::string_view text = unit.empty() ? id : std::string_view();
  key_.assign(target.filesystem);
  key_ += target.metadata ? "\nm" : "\no";
  key_ += unit.empty() ? '-' : '+';
  key_ += unit.empty() ? text : unit;
  const auto [found, is_new] = groups_.try_emplace(key_);
  if (is_new) {
    found->second.sums = {.filesystem = std::string(target.filesystem),
                          .metadata = target.metadata,
                          .unit = std::string(unit),
                          .text = std::string(text),
                          .values = {}};
  }
  return &found->second;
}

void LustreJobs::show_if_free(Group& group) {
  const bool is_text = group.sums.unit.empty();
  if (shown_ >= max_jobs_ || (is_text && shown_texts_ >= (max_jobs_ + 1) / 2)) {
    return;
  }
  group.shown = true;
  ++shown_;
  shown_texts_ += is_text ? 1 : 0;
}

void LustreJobs::count(Target& target, const host::LustreTarget& of, const host::LustreJob& job) {
  auto found = target.jobs.find(std::string(job.id));
  if (found == target.jobs.end()) {
    if (remembered_ >= kMaxRemembered) {
      ++not_counted_;
      return;
    }
    found = target.jobs.try_emplace(std::string(job.id)).first;
    ++remembered_;
    Entry& entry = found->second;
    entry.group = group_of(of, job.id);
    if (entry.group != nullptr) {
      ++entry.group->entries;
    } else {
      ++refused_;
    }
  }
  Entry& entry = found->second;
  if (entry.round == round_) {
    return;  // a second job with the same ID in one list
  }
  entry.round = round_;
  if (entry.group != nullptr && !entry.group->shown) {
    show_if_free(*entry.group);
  }
  const LustreJobValues now = values_of(job);
  const bool shown = entry.group != nullptr && entry.group->shown;
  add_increase(shown ? entry.group->sums.values : target.other->values, now, entry.last);
  entry.last = now;
}

Result<> LustreJobs::add(const std::string& key,
                         const host::LustreTarget& target,
                         std::string_view list) {
  Target& known = targets_[key];
  known.round = round_;
  LustreJobSums& other = others_[{std::string(target.filesystem), target.metadata}];
  if (other.text.empty()) {
    other = {.filesystem = std::string(target.filesystem),
             .metadata = target.metadata,
             .unit = {},
             .text = std::string(kOther),
             .values = {}};
  }
  known.other = &other;
  auto parsed = host::parse_lustre_job_stats(
      list, [&](const host::LustreJob& job) { count(known, target, job); });
  known.complete = parsed.has_value();
  return parsed;
}

void LustreJobs::keep(const std::string& key) {
  const auto found = targets_.find(key);
  if (found != targets_.end()) {
    found->second.round = round_;
    found->second.complete = false;
  }
}

void LustreJobs::drop(const Entry& entry) {
  --remembered_;
  if (entry.group == nullptr) {
    --refused_;
  } else {
    --entry.group->entries;
  }
}

void LustreJobs::end() {
  for (auto target = targets_.begin(); target != targets_.end();) {
    const bool gone = target->second.round != round_;
    if (gone || target->second.complete) {
      auto& jobs = target->second.jobs;
      for (auto job = jobs.begin(); job != jobs.end();) {
        const bool ended = gone || job->second.round != round_;
        if (ended) {
          drop(job->second);
        }
        job = ended ? jobs.erase(job) : std::next(job);
      }
    }
    target = gone ? targets_.erase(target) : std::next(target);
  }
  std::erase_if(groups_, [this](const auto& group) {
    const bool ended = group.second.entries == 0;
    if (ended && group.second.shown) {
      --shown_;
      shown_texts_ -= group.second.sums.unit.empty() ? 1 : 0;
    }
    return ended;
  });
}

void LustreJobs::each(const std::function<void(const LustreJobSums&)>& use) const {
  for (const auto& [key, group] : groups_) {
    if (group.shown) {
      use(group.sums);
    }
  }
}

void LustreJobs::each_other(const std::function<void(const LustreJobSums&)>& use) const {
  for (const auto& [key, sums] : others_) {
    use(sums);
  }
}

}  // namespace ceems::exporter
