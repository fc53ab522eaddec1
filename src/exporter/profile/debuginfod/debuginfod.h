#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "exporter/profile/symbol/binary_file.h"
#include "net/client/client.h"

namespace ceems::exporter::profile {

struct DebuginfodOptions {
  std::vector<std::string> urls = {};  ///< of servers, asked in turn; without a slash at the end
  /// Where files are kept. It is made if it does not exist.
  std::string directory = "/var/lib/ceems_exporter/debuginfod";
  std::int64_t max_file_bytes = std::int64_t{256} << 20U;
  std::int64_t max_cache_bytes = std::int64_t{1} << 30U;  ///< of all; the longest unused go first
  std::chrono::milliseconds timeout{120'000};             ///< of one file
  std::size_t requests_per_hour = 600;
  net::ClientOptions client = {};
};

/// Fetches debug files by build id from debuginfod servers
/// (https://sourceware.org/elfutils/Debuginfod.html), one at a time on its own thread, and keeps
/// them in a directory. Which build ids are asked for is up to jobs, so everything is bounded: the
/// queue, requests, sizes, times. A file that no server has is not asked for again for a day, and
/// nothing is for some minutes after a server failed. Failures are logged when they begin and when
/// they are over. find() and arrived() are thread-safe.
class Debuginfod final : public DebugFileSource {
 public:
  static constexpr std::size_t kMaxQueue = 256;
  static constexpr std::size_t kMaxKnown = 4096;  ///< build ids that no server has
  static constexpr auto kAgeOfMissing = std::chrono::hours(24);
  static constexpr auto kPauseAfterFailure = std::chrono::minutes(5);

  /// `clock` must outlive the object. Passes on errors of net::Client::create().
  static Result<std::unique_ptr<Debuginfod>> create(DebuginfodOptions options, const Clock& clock);
  /// Cancels a request in flight.
  ~Debuginfod() override;
  Debuginfod(const Debuginfod&) = delete;
  Debuginfod& operator=(const Debuginfod&) = delete;

  /// Build ids that are not 16 to 128 hexadecimal digits have no file.
  std::optional<BinaryFile> find(const std::string& build_id) override CEEMS_EXCLUDES(mutex_);
  std::vector<std::string> arrived() override CEEMS_EXCLUDES(mutex_);

 private:
  enum class Outcome : std::uint8_t { kStored, kMissing, kFailed };

  Debuginfod(DebuginfodOptions options, const Clock& clock, std::unique_ptr<net::Client> client);

  [[nodiscard]] std::string path_of(const std::string& build_id) const;
  void run(const std::stop_token& stop);
  Outcome fetch(const std::string& build_id, const std::stop_token& stop);
  Result<int> download(const std::string& url,
                       const std::string& path,
                       const std::stop_token& stop);
  void note(const std::string& build_id, Outcome outcome) CEEMS_EXCLUDES(mutex_);
  void make_room();
  bool may_request();

  const DebuginfodOptions options_;
  const Clock& clock_;
  const std::unique_ptr<net::Client> client_;

  // Used by the thread only.
  bool failing_ = false;
  bool too_large_ = false;  ///< the last file
  std::string failure_;
  Clock::SteadyTime hour_{};
  std::size_t requests_ = 0;  ///< in this hour

  Mutex mutex_;
  Condition changed_;
  std::deque<std::string> queue_ CEEMS_GUARDED_BY(mutex_);
  std::set<std::string> asked_ CEEMS_GUARDED_BY(mutex_);  ///< in the queue or being fetched
  std::map<std::string, Clock::SteadyTime> missing_ CEEMS_GUARDED_BY(mutex_);  ///< until then
  Clock::SteadyTime paused_until_ CEEMS_GUARDED_BY(mutex_){};
  std::vector<std::string> arrived_ CEEMS_GUARDED_BY(mutex_);
  std::jthread thread_;  ///< last, because it uses all other members
};

}  // namespace ceems::exporter::profile
