#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "kube/connection.h"
#include "kube/pod_source.h"

namespace ceems::kube {

struct PodWatchOptions {
  std::string cluster_id;  ///< for the log
  Connect connect;         ///< called for each list and watch, on the watch's thread
  std::size_t page_size = 250;
  std::size_t max_page_bytes = std::size_t{128} << 20U;
  std::size_t max_event_bytes = std::size_t{16} << 20U;
  std::size_t max_pods = 1'000'000;
  std::chrono::milliseconds list_timeout{60'000};  ///< of one page
  /// The API server sends a bookmark every minute.
  std::chrono::milliseconds idle_timeout{130'000};
  std::chrono::milliseconds watch_time{std::chrono::minutes(30)};  ///< asked for
  std::chrono::milliseconds first_pause{1000};  ///< after a failure; doubled each time
  std::chrono::milliseconds longest_pause{30'000};
  /// How long after its stream ended the view still counts as complete.
  std::chrono::milliseconds grace{5000};
};

/// The pods of a cluster, by a list and a watch that goes on from it
/// (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes). A
/// watch that ends goes on where it was; where the API server does not know that place any more
/// (410), the list is read again. Where watching is not allowed, lists are read one after the
/// other. Nothing the server sends stops it. Failures are logged when they begin and when they are
/// over.
class PodWatch final : public PodSource {
 public:
  /// `clock` outlives it. Starts nothing.
  PodWatch(PodWatchOptions options, const Clock& clock);
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;
  ~PodWatch() override;  ///< stops

  /// Waits for a complete view up to `wait`. The first call starts the thread. Thread-safe.
  Result<std::vector<std::shared_ptr<const StoredPod>>> pods(std::chrono::milliseconds wait,
                                                             const std::stop_token& stop) override;
  void forget(const std::vector<std::string>& uids) override;  ///< thread-safe

 private:
  void run(const std::stop_token& stop);
  Result<> list(const std::stop_token& stop);
  Result<> watch(const std::stop_token& stop);
  Result<> take_line(std::string_view line);
  void opened();
  void closed();
  void note_failure(const Error& error);
  void note_success();
  [[nodiscard]] std::int64_t now_ms() const;

  const PodWatchOptions options_;
  const Clock& clock_;

  // Of the thread.
  bool need_list_ = true;
  std::string resource_version_;
  std::int64_t known_ms_ = 0;  ///< when the view was last known to be complete
  std::size_t malformed_ = 0;
  bool failing_ = false;

  Mutex mutex_;
  Condition changed_;
  PodStore store_ CEEMS_GUARDED_BY(mutex_);
  bool listed_ CEEMS_GUARDED_BY(mutex_) = false;
  bool open_ CEEMS_GUARDED_BY(mutex_) = false;
  Clock::SteadyTime complete_at_ CEEMS_GUARDED_BY(mutex_){};  ///< while not open
  std::optional<Error> error_ CEEMS_GUARDED_BY(mutex_);
  std::jthread thread_;  ///< last: it uses all of the above
};

}  // namespace ceems::kube
