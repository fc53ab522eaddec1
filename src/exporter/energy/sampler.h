#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/account/account.h"
#include "exporter/energy/account/cpu_use.h"
#include "exporter/energy/account/use_meter.h"
#include "exporter/energy/meter/device_meters.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/reading_gate.h"
#include "exporter/energy/state/state_file.h"
#include "exporter/unit/unit_source.h"
#include "host/paths.h"
#include "host/proc.h"

namespace ceems::exporter::energy {

/// CPU times and the counters of packages and memory belong together, so they are read again if the
/// sampler was held up for longer than this between the first and the last, kCounterReads times in
/// all. Shorter delays do not matter, because learned values are averaged over seconds.
inline constexpr auto kHeldUp = std::chrono::milliseconds(20);
inline constexpr int kCounterReads = 3;

struct SamplerOptions {
  std::chrono::milliseconds interval{1000};
  AccountOptions account;
  double second_thread = CpuUseMeter::kSecondThread;
};

/// Reads meters and units in ticks and keeps the account of energy. One tick reads unit snapshots,
/// /proc/stat, /proc/meminfo and the meters and passes them to Account::advance(). The thread ticks
/// every `interval` and refreshes young units in between. A scrape ticks, too, when the last tick
/// is at least a quarter of the interval old.
///
/// A part that fails is left out of that interval. The log has a line when failures begin and one
/// when they end.
///
/// tick() and with_account() are safe from any thread. Call start() at most once, after privileges
/// were dropped, because capabilities belong to threads. The destructor stops and joins the thread.
class Sampler {
 public:
  /// `clock` must outlive the sampler.
  Sampler(const SamplerOptions& options,
          const Clock& clock,
          const host::Paths& paths,
          std::vector<std::shared_ptr<UnitSource>> sources,
          Meters meters,
          DeviceMeterList devices = {},
          std::unique_ptr<StateFile> state = nullptr);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  void start();
  /// Returns once a sample has been taken, at the deadline at the latest.
  void wait_first(std::chrono::steady_clock::time_point deadline) CEEMS_EXCLUDES(account_mutex_);

  /// Called after each sample with the account and the time to which it was advanced, under the
  /// account's lock. Call it before start(), at most once.
  void on_sample(std::function<void(const Account&, Clock::SteadyTime)> use);

  enum class Caller { kThread, kScrape };
  /// Takes one sample. A scrape takes none while another tick is under way or when the last one is
  /// recent enough, and its meters return what they have instead of blocking.
  void tick(Caller caller) CEEMS_EXCLUDES(tick_mutex_) CEEMS_EXCLUDES(account_mutex_);

  /// Which readings of the meters are believed. Safe for concurrent use.
  [[nodiscard]] const ReadingGate& gate() const { return gate_; }

  /// Names of the models of the devices; see DeviceMeters::models().
  [[nodiscard]] std::string device_models() const;

  /// Calls `use` with the account and the time of its last update, under the account's lock.
  void with_account(const std::function<void(Account&, Clock::SteadyTime)>& use)
      CEEMS_EXCLUDES(account_mutex_);

 private:
  /// Least time between two readings of the topology, which is read again when CPUs appear.
  static constexpr auto kTopologyPause = std::chrono::seconds(60);
  /// How often the size of the memory is read, which hardly ever changes.
  static constexpr auto kMemoryPause = std::chrono::seconds(30);
  static constexpr auto kYoungPause = std::chrono::milliseconds(200);

  void run(const std::stop_token& stop);
  void load_state() CEEMS_EXCLUDES(account_mutex_);
  void save_state(bool last) CEEMS_EXCLUDES(account_mutex_);
  void take_sample(bool may_block) CEEMS_REQUIRES(tick_mutex_) CEEMS_EXCLUDES(account_mutex_);
  void take_snapshots() CEEMS_REQUIRES(tick_mutex_);
  Clock::SteadyTime read_counters(MeterContext& context, Timing& timing)
      CEEMS_REQUIRES(tick_mutex_);
  void read_stat() CEEMS_REQUIRES(tick_mutex_);
  void read_meter(std::size_t i, MeterContext& context) CEEMS_REQUIRES(tick_mutex_);
  void use_cpus(NodeUse& use, Clock::SteadyTime now) CEEMS_REQUIRES(tick_mutex_);
  NodeUse node_use(Clock::SteadyTime now) CEEMS_REQUIRES(tick_mutex_);
  void read_memory(Clock::SteadyTime now) CEEMS_REQUIRES(tick_mutex_);

  const SamplerOptions options_;
  const Clock& clock_;
  const host::Paths paths_;
  const std::string stat_path_;
  const std::string meminfo_path_;
  const std::vector<std::shared_ptr<UnitSource>> sources_;  // each is safe for concurrent use
  const Meters meters_;                                     // read with tick_mutex_ held
  const DeviceMeterList devices_;                           // read with tick_mutex_ held
  const std::unique_ptr<StateFile> state_;                  // may be null; used by the thread

  ReadingGate gate_;  // judges with tick_mutex_ held

  Mutex tick_mutex_;  // held for a whole tick
  CpuUseMeter cpu_use_ CEEMS_GUARDED_BY(tick_mutex_);
  std::optional<Clock::SteadyTime> topology_read_ CEEMS_GUARDED_BY(tick_mutex_);
  std::optional<Clock::SteadyTime> memory_read_ CEEMS_GUARDED_BY(tick_mutex_);
  double memory_total_bytes_ CEEMS_GUARDED_BY(tick_mutex_) = 0;
  std::optional<Clock::SteadyTime> last_tick_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<bool> source_failing_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<bool> meter_failing_ CEEMS_GUARDED_BY(tick_mutex_);
  bool stat_failing_ CEEMS_GUARDED_BY(tick_mutex_) = false;
  std::optional<host::Stat> stat_ CEEMS_GUARDED_BY(tick_mutex_);
  int slow_samples_ CEEMS_GUARDED_BY(tick_mutex_) = 0;  // in a row, see kSlowSamples
  bool meminfo_failing_ CEEMS_GUARDED_BY(tick_mutex_) = false;
  // Members only so that their memory is reused from tick to tick.
  std::string buffer_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<host::BusyCpu> cpus_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<host::MeminfoLine> meminfo_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<std::shared_ptr<const UnitSnapshot>> snapshots_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<ManagerUnits> managers_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<std::optional<Reading>> readings_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<DeviceSample> device_samples_ CEEMS_GUARDED_BY(tick_mutex_);
  std::vector<DeviceUse> device_uses_ CEEMS_GUARDED_BY(tick_mutex_);
  UseMeter use_meter_ CEEMS_GUARDED_BY(tick_mutex_);

  std::function<void(const Account&, Clock::SteadyTime)> on_sample_;  // may be empty

  Mutex account_mutex_;  // locked after tick_mutex_ where both are held
  Account account_ CEEMS_GUARDED_BY(account_mutex_);
  Clock::SteadyTime updated_ CEEMS_GUARDED_BY(account_mutex_){};
  bool sampled_ CEEMS_GUARDED_BY(account_mutex_) = false;
  Condition first_sample_;  // notified when sampled_ becomes true

  Mutex wait_mutex_;     // guards nothing: a condition needs a mutex to wait with
  Condition wake_;       // never notified: only its time or a stop request ends a wait
  std::jthread thread_;  // the last member, so that it is joined before the others are destroyed
};

}  // namespace ceems::exporter::energy
