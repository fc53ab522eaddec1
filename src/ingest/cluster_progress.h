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

/// Where one cluster stands and what comes next: windows one after another, then gaps. Decides what
/// to do about a failure, writes, and logs when failing begins and when it ends. Used by the
/// writing thread only; starts no threads.
class ClusterProgress {
 public:
  struct Rules {
    std::int64_t first_ms = 0;  ///< start of the first window of a cluster without watermark
    TimeZone zone;              ///< of times in the log
    /// Units that ended before are not written, nor gaps of windows that did; set by each round.
    std::optional<std::int64_t> purged_before_ms;
  };
  /// What may come next: a window; when there are none, a gap; when there are none, the next round.
  enum class Next { kWindow, kGap, kRest };

  /// `writer` and `registry` must outlive it.
  ClusterProgress(model::Cluster cluster,
                  Rules rules,
                  store::Writer& writer,
                  metrics::Registry& registry);

  void begin_round(std::optional<std::int64_t> purged_before_ms);
  /// Another program may write from now on.
  void forget() { watermark_.reset(); }

  /// The request for the fetching thread; nothing when this round is over, for lack of work or
  /// because the store does not answer. A round begins with kWindow and goes on with what take()
  /// returned.
  std::optional<FetchRequest> next_request(Next next, std::int64_t now_ms);
  /// Writes what was fetched, or leaves it for the next round.
  Next take(FetchAnswer answer, std::int64_t now_ms);

  /// The number of windows written since the start of the program.
  [[nodiscard]] std::uint64_t windows_written() const { return metrics_.windows.value(); }

 private:
  struct WindowTask {
    std::int64_t start_ms = 0;
    std::int64_t complete_ms = 0;  ///< for Updater::release()
  };
  /// Nothing while the store does not answer.
  std::optional<WindowTask> window_task();
  /// There is no window to fetch yet.
  Next nothing_due(std::int64_t now_ms);
  Next take_window(Result<FetchedWindow> fetched, bool last, double seconds);
  /// The next gap of this round that may be filled.
  std::optional<GapRequest> gap_request(std::int64_t now_ms);
  /// True when another gap may be tried in this round.
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
  std::int64_t released_ms_ = 0;   ///< up to where updaters were asked to release windows
  std::string last_error_;         ///< of the window; empty: all is well
  std::string people_error_;       ///< of users and projects
  std::string gap_error_;          ///< of the store's gaps
  int incomplete_rounds_ = 0;      ///< in which metrics were missing that may come yet
  std::set<std::string> refused_;  ///< "updater/part" that the last window was refused
  std::set<std::int64_t> tried_;   ///< gaps of this round
  std::int64_t failed_gap_ = 0;    ///< id of the one that failed last
  bool missing_logged_ = false;
  bool giving_up_ = false;
  bool clock_behind_ = false;
  std::size_t unit_count_ = 0;  ///< of the last window
  std::size_t gap_count_ = 0;
  ClusterMetrics metrics_;
};

}  // namespace ceems::ingest
