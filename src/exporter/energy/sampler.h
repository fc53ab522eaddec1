#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "exporter/energy/account/account.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/unit/unit_source.h"
#include "host/meminfo.h"
#include "host/paths.h"

namespace ceems::exporter::energy {

/// CPU use of the whole node from the counters of /proc/stat. Not thread-safe.
class BusyCpus {
 public:
  /// `busy_seconds` since boot at `now`. CPU-seconds per second since the last call; nothing at the
  /// first call and where the counter fell (some kernels on CPU hot-plug).
  std::optional<double> advance(double busy_seconds, Clock::SteadyTime now);

 private:
  std::optional<double> last_seconds_;
  Clock::SteadyTime last_time_{};
};

struct SamplerOptions {
  std::chrono::milliseconds interval{1000};
  AccountOptions account;
};

/// Reads meters and units in steps and keeps the books. One tick: unit snapshots, /proc/stat,
/// /proc/meminfo, meters, Account::advance(). The thread ticks every `interval` and in between
/// refreshes young units; a scrape ticks, too, when the last one is a quarter of the interval old.
///
/// Whatever fails leaves out its part of the interval and is logged when it starts and when it
/// ends.
///
/// tick() and with_account() are safe from any thread. start() at most once, after privileges were
/// dropped (capabilities belong to threads); the destructor stops and joins the thread.
class Sampler {
 public:
  /// `clock` and what `paths` name outlive the sampler.
  Sampler(const SamplerOptions& options,
          const Clock& clock,
          host::Paths paths,
          std::vector<std::shared_ptr<UnitSource>> sources,
          Meters meters,
          DeviceMeterList devices = {});
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start();

  enum class Caller { kThread, kScrape };
  /// One step. For a scrape: nothing where one is under way or the last one is fresh enough; meters
  /// that may block answer with what they have.
  void tick(Caller caller);

  /// Runs `use` with the books and the time they were last brought up to date, under their lock.
  void with_account(const std::function<void(Account&, Clock::SteadyTime)>& use);

 private:
  static constexpr auto kYoungPause = std::chrono::milliseconds(200);

  void run(const std::stop_token& stop);
  void take_snapshots();
  NodeUse read_node_use(Clock::SteadyTime now);
  void read_meters(const MeterContext& context);
  void note(std::string_view what, std::string_view name, bool& failing, const Error* error);

  SamplerOptions options_;
  const Clock& clock_;
  host::Paths paths_;
  std::string stat_path_;
  std::string meminfo_path_;

  std::mutex tick_mutex_;  // guards what follows up to account_mutex_
  std::vector<std::shared_ptr<UnitSource>> sources_;
  Meters meters_;
  DeviceMeterList devices_;
  BusyCpus busy_cpus_;
  std::optional<Clock::SteadyTime> last_tick_;
  std::vector<bool> source_failing_;
  std::vector<bool> meter_failing_;
  bool stat_failing_ = false;
  bool meminfo_failing_ = false;
  // Reused from tick to tick.
  std::string buffer_;
  std::vector<host::MeminfoLine> meminfo_;
  std::vector<std::shared_ptr<const UnitSnapshot>> snapshots_;
  std::vector<ManagerUnits> managers_;
  std::vector<std::optional<Reading>> readings_;
  std::vector<DeviceSample> device_samples_;

  std::mutex account_mutex_;  // guards account_ and updated_; taken after tick_mutex_
  Account account_;
  Clock::SteadyTime updated_{};

  std::mutex wait_mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: stops before anything else goes away
};

}  // namespace ceems::exporter::energy
