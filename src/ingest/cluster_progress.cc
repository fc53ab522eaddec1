#include "ingest/cluster_progress.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/log.h"

namespace ceems::ingest {
namespace {

// For so many rounds a window is not written while metrics are missing that may still arrive. If a
// source is down for longer, users must be able to see their units anyway.
constexpr int kMaxIncompleteRounds = 3;
constexpr std::size_t kGapsPerRound = 64;
// Three weeks of 15-minute windows. The limits keep a query that is never corrected from filling
// the disk with gaps and with their units (about 100 bytes each).
constexpr std::size_t kMaxGaps = 2000;
constexpr std::size_t kMaxGapUnits = 2'000'000;
constexpr std::size_t kMinGaps = 16;
constexpr std::int64_t kAcceptIncompleteAfterMs = 86'400'000;

std::string name_of(const store::Gap& gap, const std::string& part) {
  return gap.updater + "/" + part;
}

}  // namespace

ClusterProgress::ClusterProgress(model::Cluster cluster,
                                 Rules rules,
                                 store::Writer& writer,
                                 metrics::Registry& registry)
    : cluster_(std::move(cluster)),
      rules_(rules),
      writer_(writer),
      metrics_(registry, cluster_.id) {}

void ClusterProgress::set_watermark_metric(std::int64_t watermark_ms) {
  constexpr double kMsPerSecond = 1000;
  metrics_.watermark.set(static_cast<double>(watermark_ms) / kMsPerSecond);
}

void ClusterProgress::set_gap_count(std::size_t count) {
  gap_count_ = count;
  metrics_.gaps.set(static_cast<double>(count));
}

void ClusterProgress::begin_round(std::optional<std::int64_t> purged_before_ms) {
  rules_.purged_before_ms = purged_before_ms;
  tried_.clear();
}

void ClusterProgress::failed(const Error& error) {
  metrics_.failures.add();
  metrics_.failing.set(1);
  // Logged only if the message changes: a TSDB that is down fails every round with the same one.
  if (last_error_ != error.message) {
    last_error_ = error.message;
    log::error("update failed, its window will be tried again",
               {{"cluster_id", cluster_.id}, {"err", error.message}});
  }
}

std::optional<FetchRequest> ClusterProgress::next_request(Next next, std::int64_t now_ms) {
  if (next == Next::kRest) {
    return std::nullopt;
  }
  if (next == Next::kGap) {
    if (auto gap = gap_request(now_ms)) {
      return std::move(*gap);
    }
  }
  const auto task = window_task();
  const bool fetch = next == Next::kWindow;
  if (!task || (!fetch && task->complete_ms <= released_ms_)) {
    return std::nullopt;
  }
  WindowRequest request{.start_ms = task->start_ms,
                        .complete_ms = task->complete_ms,
                        .now_ms = now_ms,
                        .fetch = fetch};
  if (fetch && !std::exchange(names_stored_, false)) {
    auto names = writer_.account_names(cluster_.id);
    if (!names) {
      failed(names.error());
      return std::nullopt;
    }
    request.names = std::move(*names);
  }
  released_ms_ = task->complete_ms;
  return request;
}

ClusterProgress::Next ClusterProgress::take(FetchAnswer answer, std::int64_t now_ms) {
  if (auto* gap = std::get_if<GapAnswer>(&answer)) {
    return take_gap(gap->gap, std::move(gap->fill)) ? Next::kGap : Next::kRest;
  }
  auto& window = std::get<WindowAnswer>(answer);
  if (!window.due) {
    return window.fetch ? nothing_due(now_ms) : Next::kRest;
  }
  return take_window(std::move(window.fetched), window.due->last, window.seconds);
}

std::optional<ClusterProgress::WindowTask> ClusterProgress::window_task() {
  if (!watermark_) {
    const auto stored = writer_.watermark(cluster_.id);
    if (!stored) {
      failed(stored.error());
      return std::nullopt;
    }
    watermark_ = stored->value_or(rules_.first_ms);
    set_watermark_metric(stored->value_or(0));
  }
  const auto gaps = writer_.gaps(cluster_.id);
  if (!gaps) {
    failed(gaps.error());
    return std::nullopt;
  }
  set_gap_count(gaps->size());
  return WindowTask{.start_ms = *watermark_,
                    .complete_ms = gaps->empty()
                                       ? *watermark_
                                       : std::min(*watermark_, gaps->front().window.start_ms)};
}

ClusterProgress::Next ClusterProgress::nothing_due(std::int64_t now_ms) {
  const bool behind = watermark_ && now_ms < *watermark_;
  if (behind && !clock_behind_) {
    log::warn("the clock is behind the last update; waiting for it to pass",
              {{"cluster_id", cluster_.id},
               {"last_update", rules_.zone.local_with_offset(watermark_.value_or(0))}});
  }
  clock_behind_ = behind;
  return behind || incomplete_rounds_ > 0 ? Next::kRest : Next::kGap;
}

void ClusterProgress::note_people(const std::optional<Error>& cause) {
  const std::string now = cause ? cause->message : "";
  if (!now.empty() && now != people_error_) {
    log::warn("cannot fetch users, projects and their leads, keeping the known ones",
              {{"cluster_id", cluster_.id}, {"err", now}});
  } else if (now.empty() && !people_error_.empty()) {
    log::info("users, projects and their leads are fetched again", {{"cluster_id", cluster_.id}});
  }
  people_error_ = now;
}

bool ClusterProgress::keep_waiting(const FetchedWindow& fetched) {
  if (!fetched.cause || fetched.lasting) {
    incomplete_rounds_ = 0;
    return false;
  }
  ++incomplete_rounds_;
  return incomplete_rounds_ < kMaxIncompleteRounds || !writer_.keeps_gaps();
}

void ClusterProgress::note_missing(const FetchedWindow& fetched) {
  refused_.clear();
  std::vector<std::string> parts;
  for (const auto& gap : fetched.update.gaps) {
    for (const auto& part : gap.parts) {
      parts.push_back(name_of(gap, part));
    }
  }
  if (fetched.lasting) {
    refused_.insert(parts.begin(), parts.end());
  }
  if (fetched.cause && !missing_logged_) {
    log::error("metrics are missing and will be filled in later",
               {{"cluster_id", cluster_.id},
                {"from", rules_.zone.local_with_offset(fetched.update.window.start_ms)},
                {"missing", fmt::format("{}", fmt::join(parts, " "))},
                {"err", fetched.cause->message}});
  } else if (!fetched.cause && missing_logged_) {
    log::info("metrics are complete again", {{"cluster_id", cluster_.id}});
  }
  missing_logged_ = fetched.cause.has_value();
}

void ClusterProgress::written(const FetchedWindow& fetched, const store::WriteReport& report) {
  const auto& update = fetched.update;
  watermark_ = update.window.end_ms;
  names_stored_ = true;
  if (windows_written() == 0 || !last_error_.empty()) {
    log::info("units updated", {{"cluster_id", cluster_.id},
                                {"from", rules_.zone.local_with_offset(update.window.start_ms)},
                                {"to", rules_.zone.local_with_offset(update.window.end_ms)},
                                {"units", update.units.size()}});
  } else {
    log::debug("units updated", {{"cluster_id", cluster_.id},
                                 {"to", rules_.zone.local_with_offset(update.window.end_ms)},
                                 {"units", update.units.size()}});
  }
  last_error_.clear();
  note_missing(fetched);
  // The ends of units that were running would be there.
  if (update.units.empty() && running_count_ > 0) {
    log::warn("the resource manager lists no unit any more",
              {{"cluster_id", cluster_.id}, {"running_in_last_window", running_count_}});
  }
  running_count_ =
      static_cast<std::size_t>(std::ranges::count(update.units, 0, &model::Unit::ended_at_ts));
  unit_count_ = update.units.size();
  metrics_.windows.add();
  set_watermark_metric(update.window.end_ms);
  metrics_.units.set(static_cast<double>(unit_count_));
  metrics_.units_skipped.add(report.skipped);
  metrics_.failing.set(fetched.cause ? 1 : 0);
}

ClusterProgress::Next ClusterProgress::take_window(Result<FetchedWindow> fetched,
                                                   bool last,
                                                   double seconds) {
  clock_behind_ = false;
  if (!fetched) {
    failed(fetched.error());
    return Next::kRest;
  }
  metrics_.fetch_seconds.set(seconds);
  if (keep_waiting(*fetched)) {
    failed(Error(fetched->cause.value_or(Error{})).with_context("updating metrics"));
    return Next::kRest;
  }
  store::ClusterUpdate& update = fetched->update;
  if (rules_.purged_before_ms) {
    // The next purge would delete them, and the next window would add them again.
    std::erase_if(update.units, [cutoff = *rules_.purged_before_ms](const model::Unit& unit) {
      return unit.ended_at_ts > 0 && unit.ended_at_ts < cutoff;
    });
  }
  if (update.units.empty()) {
    update.gaps.clear();
  }
  auto report = writer_.write(update);
  if (!report) {
    // The commit may have taken effect anyway; only the store knows.
    watermark_.reset();
    failed(std::move(report).error().with_context("writing"));
    return Next::kRest;
  }
  note_people(fetched->people_cause);
  written(*fetched, *report);
  if (!last) {
    return Next::kWindow;
  }
  return incomplete_rounds_ > 0 ? Next::kRest : Next::kGap;
}

void ClusterProgress::give_up_oldest(std::vector<store::Gap>& gaps) {
  const std::size_t per_window = std::max<std::size_t>(unit_count_, 1);
  const std::size_t limit = std::clamp(kMaxGapUnits / per_window, kMinGaps, kMaxGaps);
  if (gaps.size() <= limit) {
    giving_up_ = false;
  }
  while (gaps.size() > limit) {
    const store::Gap& oldest = gaps.front();
    if (!std::exchange(giving_up_, true)) {
      log::error("too many windows without metrics, the oldest are given up",
                 {{"cluster_id", cluster_.id},
                  {"from", rules_.zone.local_with_offset(oldest.window.start_ms)},
                  {"missing", fmt::format("{}", fmt::join(oldest.parts, " "))}});
    }
    auto done = writer_.fill_gap(
        {.cluster = cluster_, .gap_id = oldest.id, .units = {}, .times = {}, .still_missing = {}});
    if (!done) {
      return;
    }
    gaps.erase(gaps.begin());
  }
}

std::optional<GapRequest> ClusterProgress::gap_request(std::int64_t now_ms) {
  if (tried_.size() >= kGapsPerRound) {
    return std::nullopt;
  }
  auto gaps = writer_.gaps(cluster_.id);
  if (!gaps) {
    failed(gaps.error());
    return std::nullopt;
  }
  give_up_oldest(*gaps);
  set_gap_count(gaps->size());
  // Begin after the gap that failed last, so that it does not block the others forever.
  const auto begin = std::ranges::upper_bound(*gaps, failed_gap_, {}, &store::Gap::id);
  std::ranges::rotate(*gaps, begin == gaps->end() ? gaps->begin() : begin);
  for (auto& gap : *gaps) {
    const bool refused = std::ranges::all_of(
        gap.parts, [&](const std::string& part) { return refused_.contains(name_of(gap, part)); });
    if (refused || !tried_.insert(gap.id).second) {
      continue;
    }
    auto units = writer_.gap_units(gap.id);
    if (!units) {
      failed(units.error());
      return std::nullopt;
    }
    const bool old = now_ms - gap.window.end_ms > kAcceptIncompleteAfterMs;
    return GapRequest{.gap = std::move(gap), .units = std::move(*units), .accept_incomplete = old};
  }
  return std::nullopt;
}

bool ClusterProgress::take_gap(const store::Gap& gap, Result<store::GapFill> fill) {
  const Result<> done = fill ? writer_.fill_gap(*fill) : Result<>(fail(Error(fill.error())));
  if (done) {
    gap_error_.clear();
    if (fill->still_missing.empty() && gap_count_ > 0) {
      metrics_.gaps_filled.add();
      set_gap_count(gap_count_ - 1);
    }
    log::debug("missing metrics are filled in",
               {{"cluster_id", cluster_.id},
                {"from", rules_.zone.local_with_offset(gap.window.start_ms)},
                {"to", rules_.zone.local_with_offset(gap.window.end_ms)}});
    if (gap_count_ == 0) {
      log::info("all missing metrics are filled in", {{"cluster_id", cluster_.id}});
    }
    return true;
  }
  failed_gap_ = gap.id;
  metrics_.failures.add();
  if (gap_error_ != done.error().message) {
    gap_error_ = done.error().message;
    log::warn("missing metrics cannot be filled in yet",
              {{"cluster_id", cluster_.id},
               {"from", rules_.zone.local_with_offset(gap.window.start_ms)},
               {"err", done.error().message}});
  }
  // Queries that are rejected for this window may be accepted for others.
  return done.error().code == ErrorCode::kInvalidArgument;
}

}  // namespace ceems::ingest
