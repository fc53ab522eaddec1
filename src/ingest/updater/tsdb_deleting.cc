// The updater "tsdb": which series it deletes, and when.
#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "ingest/updater/tsdb.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

// The maximum number of windows whose series are still to be deleted; the oldest are dropped first.
constexpr std::size_t kMaxPending = 1000;

std::string uuid_matcher(const std::vector<std::string>& uuids) {
  return fmt::format("{{uuid=~\"{}\"}}", tsdb::quote_text(tsdb::exact_regex(uuids)));
}

/// Whether the text is a UUID, as VMs and pods have: 8-4-4-4-12 hexadecimal digits.
bool is_uuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  return std::ranges::equal(text, kForm, [](char c, char form) {
    return form == '-' ? c == '-' : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

/// The ignored units whose id was never given out before and never will be again, and who had no
/// life that counts: all their series may go. A VM that was launched anew has several lives.
std::vector<std::string> unique_ids(const std::vector<model::Unit>& units, milliseconds cutoff) {
  std::set<std::string> ids;
  std::set<std::string> others;
  for (const model::Unit& unit : units) {
    const bool manager_has_uuids =
        unit.resource_manager == "openstack" || unit.resource_manager == "k8s";
    const bool short_since_creation = unit.created_at_ts > 0 && unit.started_at_ts > 0 &&
                                      unit.started_at_ts - unit.created_at_ts < cutoff.count();
    const bool alone =
        unit.ignore && manager_has_uuids && is_uuid(unit.uuid) && short_since_creation;
    (alone ? ids : others).insert(unit.uuid);
  }
  std::erase_if(ids, [&others](const std::string& id) { return others.contains(id); });
  return {ids.begin(), ids.end()};
}

}  // namespace

void TsdbUpdater::mark_ignored(model::Window window, std::vector<model::Unit>& units) {
  std::vector<std::string> ignored;
  for (auto& unit : units) {
    if (unit.ended_at_ts > 0 && unit.ended_at_ts - unit.started_at_ts < options_.cutoff.count()) {
      unit.ignore = true;
      if (!unit.uuid.empty()) {
        ignored.push_back(unit.uuid);
      }
    }
  }
  PendingDeletion deletion{.window = window, .matchers = options_.labels_to_drop, .unique_ids = {}};
  // {uuid=~""} would match every series without the label.
  if (options_.delete_ignored && !ignored.empty()) {
    deletion.matchers.push_back(uuid_matcher(ignored));
    deletion.unique_ids = unique_ids(units, options_.cutoff);
  }
  // A window that is updated again replaces its earlier values.
  std::erase_if(pending_, [window](const PendingDeletion& pending) {
    return pending.window.start_ms >= window.start_ms;
  });
  if (!deletion.matchers.empty()) {
    pending_.push_back(std::move(deletion));
  }
  if (pending_.size() > kMaxPending) {
    pending_.erase(pending_.begin());
  }
}

Result<> TsdbUpdater::delete_now(const PendingDeletion& deletion) {
  auto done =
      client_->delete_series(deletion.matchers, deletion.window.start_ms - options_.cutoff.count(),
                             deletion.window.end_ms);
  if (done || !tsdb::takes_no_range(done.error())) {
    return done;
  }
  note_whole_series_only();
  if (!options_.delete_whole_series || deletion.unique_ids.empty()) {
    return {};
  }
  return client_->delete_whole_series({uuid_matcher(deletion.unique_ids)});
}

void TsdbUpdater::note_whole_series_only() {
  if (std::exchange(whole_series_only_, true)) {
    return;
  }
  if (!options_.delete_whole_series) {
    log::warn(
        "the TSDB can only delete whole series, so nothing is deleted; set delete_whole_series to"
        " delete series of ignored VMs and pods, or turn off delete_ignored and labels_to_drop");
  } else if (!options_.labels_to_drop.empty()) {
    log::warn("the TSDB can only delete whole series, so labels_to_drop has no effect");
  } else {
    log::info("the TSDB can only delete whole series: only series of ignored VMs and pods are");
  }
}

void TsdbUpdater::release(std::int64_t complete_ms) {
  for (auto& deletion : std::exchange(pending_, {})) {
    if (deletion.window.end_ms > complete_ms) {
      pending_.push_back(std::move(deletion));
      continue;
    }
    auto done = delete_now(deletion);
    const std::string error = done ? "" : done.error().message;
    if (!done && error != deletion_error_) {
      log::warn("cannot delete series from the TSDB", {{"err", error}});
    } else if (done && !deletion_error_.empty()) {
      log::info("series are deleted from the TSDB again");
    }
    deletion_error_ = error;
  }
}

}  // namespace ceems::ingest
