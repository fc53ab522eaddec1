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
  std::string cluster_id;  ///< for log lines
  Connect connect;         ///< called for each list and watch, on the thread of the watch
  std::size_t page_size = 250;
  std::size_t max_page_bytes = std::size_t{128} << 20U;
  std::size_t max_event_bytes = std::size_t{16} << 20U;
  std::size_t max_pods = 1'000'000;
  std::chrono::milliseconds list_timeout{60'000};  ///< for one page
  /// The API server sends a bookmark every minute, so a silent connection is dead.
  std::chrono::milliseconds idle_timeout{130'000};
  /// How long the API server should keep a watch open.
  std::chrono::milliseconds watch_time{std::chrono::minutes(30)};
  std::chrono::milliseconds first_pause{1000};  ///< after a failure; doubled after each further one
  std::chrono::milliseconds max_pause{30'000};
  /// How long after the end of its stream the view still counts as complete.
  std::chrono::milliseconds grace{5000};
};

/// Follows the pods of a cluster: reads a list, then watches the changes from there
/// (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes). A
/// watch that ends is resumed at the same place. If the API server no longer knows that place
/// (410), the list is read again. If watching is not allowed, lists are read one after the other.
/// Nothing that the server sends ends the watch. Failures are logged when they begin and when they
/// are over.
class PodWatch final : public PodSource {
 public:
  /// `clock` must outlive the object. The constructor starts nothing.
  PodWatch(PodWatchOptions options, const Clock& clock);
  PodWatch(const PodWatch&) = delete;
  PodWatch& operator=(const PodWatch&) = delete;
  ~PodWatch() override;  ///< stops the thread

  /// Waits for a complete view, for up to `wait`. The first call starts the thread. Thread-safe.
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

  const PodWatchOptions options_;
  const Clock& clock_;

  // Used by the thread only.
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
  Clock::SteadyTime complete_at_ CEEMS_GUARDED_BY(mutex_){};  ///< valid while not open
  std::optional<Error> error_ CEEMS_GUARDED_BY(mutex_);
  std::jthread thread_;  ///< last, because it uses all other members
};

}  // namespace ceems::kube
