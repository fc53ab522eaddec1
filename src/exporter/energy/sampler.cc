#include "exporter/energy/sampler.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "host/cpu_topology.h"
#include "host/proc.h"
#include "host/read_file.h"
#include "os/suspend.h"

namespace ceems::exporter::energy {
namespace {

/// A snapshot that a scrape has just taken is used, too, if it is younger than this part of the
/// interval. An older one would charge energy by the CPU time of an earlier one, and what a unit
/// used that has come and gone in between would be charged by the energy of a part of its life.
constexpr int kSharedPart = 10;

/// After so many samples in a row that were held up each time, the machine is slow, and once is
/// enough until it is not.
constexpr int kSlowSamples = 10;

/// A node without any unit of a manager is not an error.
bool means_no_units(const Error& error) {
  return error.code == ErrorCode::kNoData || error.code == ErrorCode::kNotFound;
}

/// Of packages or memory, which are read together with CPU times.
bool is_counter(const EnergyMeter& meter) {
  const Domain domain = meter.source().domain;
  return domain == Domain::kPackage || domain == Domain::kDram;
}

/// Updates `failing` and logs when a source starts to fail and when it works again. `error` is null
/// when it worked.
void log_change(std::string_view key, std::string_view name, bool& failing, const Error* error) {
  if (failing == (error != nullptr)) {
    return;
  }
  failing = error != nullptr;
  if (failing) {
    log::warn("energy: source has no value", {{key, name}, {"err", error->message}});
  } else {
    log::info("energy: source is back", {{key, name}});
  }
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options,
                 const Clock& clock,
                 const host::Paths& paths,
                 std::vector<std::shared_ptr<UnitSource>> sources,
                 Meters meters,
                 DeviceMeterList devices,
                 std::unique_ptr<StateFile> state)
    : options_(options),
      clock_(clock),
      paths_(paths),
      stat_path_((paths.proc / "stat").string()),
      meminfo_path_((paths.proc / "meminfo").string()),
      sources_(std::move(sources)),
      meters_(std::move(meters)),
      devices_(std::move(devices)),
      state_(std::move(state)),
      gate_(meters_, node_limits(meters_, paths)),
      cpu_use_(host::read_cpu_topology(paths), options.second_thread),
      source_failing_(sources_.size()),
      meter_failing_(meters_.size()),
      snapshots_(sources_.size()),
      managers_(sources_.size()),
      readings_(meters_.size()),
      account_(options.account) {
  for (const auto& meter : meters_) {
    account_.add_source(meter->source());
  }
  updated_ = clock_.steady_now();
}

Sampler::~Sampler() = default;

void Sampler::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Sampler::take_snapshots() {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    managers_[i] = {.manager = sources_[i]->manager(), .snapshot = nullptr};
    auto snapshot = sources_[i]->energy_snapshot(options_.interval / kSharedPart);
    bool failing = source_failing_[i];
    if (snapshot) {
      snapshots_[i] = std::move(*snapshot);
      managers_[i].snapshot = snapshots_[i].get();
      log_change("manager", managers_[i].manager, failing, nullptr);
    } else if (means_no_units(snapshot.error())) {
      // All units of the manager are gone, which an empty snapshot expresses.
      const auto now = clock_.steady_now();
      auto none = std::make_shared<UnitSnapshot>();
      none->manager = managers_[i].manager;
      none->taken = now;
      none->wall = clock_.now();
      snapshots_[i] = std::move(none);
      managers_[i].snapshot = snapshots_[i].get();
    } else {
      log_change("manager", managers_[i].manager, failing, &snapshot.error());
    }
    source_failing_[i] = failing;
  }
}

void Sampler::read_stat() {
  const auto text = host::read_file(stat_path_.c_str(), buffer_);
  const auto stat = text ? host::parse_stat(buffer_) : fail(text.error());
  log_change("source", stat_path_, stat_failing_, stat ? nullptr : &stat.error());
  stat_ = stat ? std::optional(*stat) : std::nullopt;
  if (stat_) {
    host::parse_busy_cpus(buffer_, cpus_);
  }
}

/// Reads CPU times and the counters of packages and memory. Sets the time of the latter in
/// `context`, and returns that of CPU times.
Clock::SteadyTime Sampler::read_counters(MeterContext& context, Timing& timing) {
  const auto seconds = [](auto time) { return std::chrono::duration<double>(time).count(); };
  std::ranges::fill(readings_, std::nullopt);
  for (int attempt = slow_samples_ < kSlowSamples ? 1 : kCounterReads;; ++attempt) {
    const auto stat_time = clock_.steady_now();
    read_stat();
    context.now = clock_.steady_now();
    context.suspended = os::suspended_time();
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      if (is_counter(*meters_[i])) {
        read_meter(i, context);
      }
    }
    const auto end = clock_.steady_now();
    const bool held_up = end - stat_time > kHeldUp;
    if (!held_up || attempt >= kCounterReads) {
      slow_samples_ = held_up ? slow_samples_ + 1 : 0;
      timing.late = seconds(end - context.now);
      timing.early = seconds(context.now - stat_time);
      return stat_time;
    }
  }
}

void Sampler::use_cpus(NodeUse& use, Clock::SteadyTime now) {
  if (!stat_) {
    return;
  }
  use.cpus_online = static_cast<double>(stat_->cpus);
  const bool may_read = !topology_read_ || now - *topology_read_ >= kTopologyPause;
  if (!cpu_use_.knows(cpus_) && may_read) {
    cpu_use_.set_topology(host::read_cpu_topology(paths_));
    topology_read_ = now;
  }
  use.busy_cpus =
      cpu_use_.advance(host::busy_ticks(stat_->total), cpus_, now, host::all_ticks(stat_->total));
  use.cpus = cpu_use_.cpus();
  use.sockets = cpu_use_.sockets();
}

/// `now`: when CPU times were read.
NodeUse Sampler::node_use(Clock::SteadyTime now) {
  NodeUse use;
  use_cpus(use, now);
  read_memory(now);
  use.memory_total_bytes = memory_total_bytes_;
  return use;
}

void Sampler::read_memory(Clock::SteadyTime now) {
  if (memory_read_ && now - *memory_read_ < kMemoryPause) {
    return;
  }
  const auto text = host::read_file(meminfo_path_.c_str(), buffer_);
  const auto parsed = text ? host::parse_meminfo(buffer_, meminfo_) : text;
  log_change("source", meminfo_path_, meminfo_failing_, parsed ? nullptr : &parsed.error());
  memory_read_ = parsed ? std::optional(now) : std::nullopt;
  memory_total_bytes_ = 0;
  for (const host::MeminfoLine& line : meminfo_) {
    if (parsed && line.key == "MemTotal") {
      memory_total_bytes_ = static_cast<double>(line.value);
    }
  }
}

void Sampler::read_meter(std::size_t i, MeterContext& context) {
  context.gate = &gate_.gate(i);
  auto reading = meters_[i]->read(context);
  bool failing = meter_failing_[i];
  const auto doubt = gate_.gate(i).doubt();
  const bool said = doubt && *doubt != Doubt::kUnreadable;  // by the gate, which has its reason
  if (reading || !said) {
    log_change("source", meters_[i]->source().name, failing, reading ? nullptr : &reading.error());
  }
  meter_failing_[i] = failing;
  if (reading) {
    const auto& earlier = readings_[i];  // by another attempt of this sample
    reading->joules += earlier ? earlier->joules : 0;
    readings_[i] = *reading;
  }
}

void Sampler::tick(Caller caller) {
  if (caller == Caller::kThread) {
    const MutexLock lock(tick_mutex_);
    take_sample(true);
    return;
  }
  if (!tick_mutex_.try_lock()) {
    return;
  }
  const MutexLock lock(tick_mutex_, kAdoptLock);
  if (!last_tick_ || clock_.steady_now() - *last_tick_ >= options_.interval / 4) {
    take_sample(false);
  }
}

void Sampler::take_sample(bool may_block) {
  take_snapshots();
  MeterContext context{.now = {}, .utilisation = {}, .may_block = may_block, .suspended = {}};
  Timing timing;
  const NodeUse use = node_use(read_counters(context, timing));
  timing.slip = cpu_use_.slip();
  const auto now = context.now;
  last_tick_ = now;
  if (use.busy_cpus && use.cpus_online > 0) {
    context.utilisation = std::clamp(*use.busy_cpus / use.cpus_online, 0.0, 1.0);
  }
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    if (!is_counter(*meters_[i])) {
      read_meter(i, context);
    }
  }
  device_samples_.clear();
  device_uses_.clear();
  bool devices_used = false;
  for (const auto& devices : devices_) {
    devices->read(context, managers_, device_samples_);
    devices_used = devices->read_use(managers_, device_uses_) || devices_used;
  }
  double device_joules = 0;
  std::size_t devices_shown = 0;
  for (const DeviceSample& device : device_samples_) {
    device_joules += device.joules;
    devices_shown += device.silent ? 0 : 1;
  }
  gate_.judge({.time = now,
               .suspended = context.suspended,
               .utilisation = context.utilisation,
               .sockets = use.sockets,
               .device_joules = device_joules,
               .devices = devices_shown,
               .readings = readings_});
  const MutexLock account_lock(account_mutex_);
  account_.advance({.time = now,
                    .readings = readings_,
                    .node = use,
                    .managers = managers_,
                    .devices = device_samples_,
                    .timing = timing});
  use_meter_.advance({.time = now,
                      .cpus_online = use.cpus_online,
                      .managers = managers_,
                      .sources = sources_,
                      .has_devices = !devices_.empty(),
                      .devices_read = devices_used,
                      .devices = device_uses_},
                     account_.units());
  if (on_sample_) {
    on_sample_(account_, now);
  }
  updated_ = now;
  if (!std::exchange(sampled_, true)) {
    first_sample_.notify_all();
  }
}

void Sampler::on_sample(std::function<void(const Account&, Clock::SteadyTime)> use) {
  on_sample_ = std::move(use);
}

void Sampler::wait_first(std::chrono::steady_clock::time_point deadline) {
  MutexLock lock(account_mutex_);
  first_sample_.wait_until(lock, deadline,
                           [this]() CEEMS_REQUIRES(account_mutex_) { return sampled_; });
}

void Sampler::with_account(const std::function<void(Account&, Clock::SteadyTime)>& use) {
  const MutexLock lock(account_mutex_);
  use(account_, updated_);
}

std::string Sampler::device_models() const {
  std::string names;
  for (const auto& devices : devices_) {
    const std::string more = devices->models();
    names += (names.empty() || more.empty() ? "" : ", ") + more;
  }
  return names;
}

void Sampler::run(const std::stop_token& stop) {
  bool failed = false;
  const auto guarded = [&failed](const auto& step) {
    try {
      step();
    } catch (const std::exception& exception) {
      if (!std::exchange(failed, true)) {
        log::error("energy: the sampler failed; later failures are not logged",
                   {{"err", exception.what()}});
      }
    }
  };
  guarded([this] { load_state(); });
  while (!stop.stop_requested()) {
    const auto next = std::chrono::steady_clock::now() + options_.interval;
    guarded([this] { tick(Caller::kThread); });
    guarded([this] { save_state(false); });
    for (auto now = std::chrono::steady_clock::now(); now < next && !stop.stop_requested();
         now = std::chrono::steady_clock::now()) {
      const bool young = std::any_of(sources_.begin(), sources_.end(),
                                     [](const auto& source) { return source->has_young(); });
      const auto pause =
          young ? std::min<Clock::SteadyTime::duration>(kYoungPause, next - now) : next - now;
      {
        MutexLock lock(wait_mutex_);
        wake_.wait_for(lock, stop, pause, [] { return false; });
      }
      if (young && std::chrono::steady_clock::now() < next) {
        guarded([this] {
          for (const auto& source : sources_) {
            source->refresh_young();
          }
        });
      }
    }
  }
  guarded([this] { save_state(true); });
}

void Sampler::load_state() {
  if (state_) {
    const Learned learned = state_->load();
    const MutexLock lock(account_mutex_);
    account_.restore(learned);
  }
}

void Sampler::save_state(bool last) {
  if (!state_ || (!last && !state_->due())) {
    return;
  }
  Learned learned;
  {
    const MutexLock lock(account_mutex_);
    learned = account_.learned();
  }
  if (last) {
    state_->save_last(learned);
  } else {
    state_->save(learned);
  }
}

}  // namespace ceems::exporter::energy
