#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "ingest/update_fetch.h"
#include "ingest/update_metrics.h"
#include "store/store.h"

namespace ceems::ingest {

/// The progress of one cluster and what to fetch next: windows one after another, then gaps.
/// Decides how to handle failures, writes, and logs when failures begin and end. Used only by the
/// writing thread; starts no threads.
class ClusterProgress {
 public:
  struct Rules {
    std::int64_t first_ms = 0;  ///< start of the first window of a cluster that has no watermark
    TimeZone zone;              ///< of times in log lines
    /// Units that ended before this time are not written, nor are gaps of windows that ended before
    /// it. Set by each round.
    std::optional<std::int64_t> purged_before_ms;
  };
  /// What may come next: a window; if none is due, a gap; if there is none, the next round.
  enum class Next { kWindow, kGap, kRest };

  /// `writer` and `registry` must outlive it.
  ClusterProgress(model::Cluster cluster,
                  Rules rules,
                  store::Writer& writer,
                  metrics::Registry& registry);

  void begin_round(std::optional<std::int64_t> purged_before_ms);
  /// Must be called when another program may have become the writer.
  void forget() {
    watermark_.reset();
    names_stored_ = false;
  }

  /// Returns the next request for the fetching thread. Returns nothing when this round is over,
  /// because there is no more work or the store does not respond. A round begins with kWindow and
  /// continues with what take() returned.
  std::optional<FetchRequest> next_request(Next next, std::int64_t now_ms);
  /// Writes the fetched window, or leaves it to the next round.
  Next take(FetchAnswer answer, std::int64_t now_ms);

  /// The number of windows written since the start of the program.
  [[nodiscard]] std::uint64_t windows_written() const { return metrics_.windows.value(); }

 private:
  struct WindowTask {
    std::int64_t start_ms = 0;
    std::int64_t complete_ms = 0;  ///< for Updater::release()
  };
  /// Returns nothing while the store does not respond.
  std::optional<WindowTask> window_task();
  /// Called if no window is due yet.
  Next nothing_due(std::int64_t now_ms);
  Next take_window(Result<FetchedWindow> fetched, bool last, double seconds);
  /// Returns the next gap that may be filled in this round.
  std::optional<GapRequest> gap_request(std::int64_t now_ms);
  /// Returns whether another gap may be tried in this round.
  bool take_gap(const store::Gap& gap, Result<store::GapFill> fill);

  void failed(const Error& error);
  void set_watermark_metric(std::int64_t watermark_ms);
  void set_gap_count(std::size_t count);
  void note_people(const std::optional<Error>& cause);
  [[nodiscard]] bool keep_waiting(const FetchedWindow& fetched);
  void note_missing(const FetchedWindow& fetched);
  void written(const FetchedWindow& fetched, const store::WriteReport& report);
  /// Closes the oldest gaps when there are too many.
  void give_up_oldest(std::vector<store::Gap>& gaps);

  const model::Cluster cluster_;
  Rules rules_;
  store::Writer& writer_;
  std::optional<std::int64_t> watermark_;
  /// Whether the last window that was requested has been written, with the names of its accounts.
  bool names_stored_ = false;
  std::int64_t released_ms_ = 0;   ///< up to where updaters were asked to release windows
  std::string last_error_;         ///< of the last window; empty if it succeeded
  std::string people_error_;       ///< of fetching users and projects
  std::string gap_error_;          ///< of reading or writing gaps in the store
  int incomplete_rounds_ = 0;      ///< rounds in which metrics were missing that may still arrive
  std::set<std::string> refused_;  ///< "updater/part" rejected by the source for the last window
  std::set<std::int64_t> tried_;   ///< the gaps tried in this round
  std::int64_t failed_gap_ = 0;    ///< id of the gap that failed last
  bool missing_logged_ = false;
  bool giving_up_ = false;
  bool clock_behind_ = false;
  std::size_t unit_count_ = 0;     ///< in the last window
  std::size_t running_count_ = 0;  ///< of these, at its end
  std::size_t gap_count_ = 0;
  ClusterMetrics metrics_;
};

}  // namespace ceems::ingest
