#include "exporter/energy/sampler.h"

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "host/cpu_topology.h"
#include "host/read_file.h"
#include "host/stat.h"
#include "os/suspend.h"

namespace ceems::exporter::energy {
namespace {

/// A snapshot that a scrape has just taken is used, too, if it is younger than this part of the
/// interval. An older one would charge energy by the CPU time of an earlier one, and what a unit
/// used that has come and gone in between would be charged by the energy of a part of its life.
constexpr int kSharedPart = 10;

/// A node without any unit of a manager is not an error.
bool means_no_units(const Error& error) {
  return error.code == ErrorCode::kNoData || error.code == ErrorCode::kNotFound;
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

void Sampler::read_cpu_use(NodeUse& use, Clock::SteadyTime now) {
  const auto text = host::read_file(stat_path_.c_str(), buffer_);
  const auto stat = text ? host::parse_stat(buffer_) : fail(text.error());
  log_change("source", stat_path_, stat_failing_, stat ? nullptr : &stat.error());
  if (!stat) {
    return;
  }
  use.cpus_online = static_cast<double>(stat->cpus);
  host::parse_busy_cpus(buffer_, cpus_);
  const bool may_read = !topology_read_ || now - *topology_read_ >= kTopologyPause;
  if (!cpu_use_.knows(cpus_) && may_read) {
    cpu_use_.set_topology(host::read_cpu_topology(paths_));
    topology_read_ = now;
  }
  use.busy_cpus =
      cpu_use_.advance(host::busy_ticks(stat->total), cpus_, now, host::all_ticks(stat->total));
  use.cpus = cpu_use_.cpus();
  use.sockets = cpu_use_.sockets();
}

NodeUse Sampler::read_node_use(Clock::SteadyTime now) {
  NodeUse use;
  read_cpu_use(use, now);
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

/// Returns how long after `context.now` the last counter of packages and memory was read, in
/// seconds.
double Sampler::read_meters(const MeterContext& context) {
  double late = 0;
  for (std::size_t i = 0; i < meters_.size(); ++i) {
    auto reading = meters_[i]->read(context);
    const Domain domain = meters_[i]->source().domain;
    if (domain == Domain::kPackage || domain == Domain::kDram) {
      late = std::chrono::duration<double>(clock_.steady_now() - context.now).count();
    }
    bool failing = meter_failing_[i];
    log_change("source", meters_[i]->source().name, failing, reading ? nullptr : &reading.error());
    meter_failing_[i] = failing;
    readings_[i] = reading ? std::optional(*reading) : std::nullopt;
  }
  return late;
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
  const NodeUse use = read_node_use(clock_.steady_now());
  // The system may have held up this thread, so the energy is that of the time up to now.
  const auto now = clock_.steady_now();
  last_tick_ = now;
  MeterContext context{
      .now = now, .utilisation = {}, .may_block = may_block, .suspended = os::suspended_time()};
  if (use.busy_cpus && use.cpus_online > 0) {
    context.utilisation = std::clamp(*use.busy_cpus / use.cpus_online, 0.0, 1.0);
  }
  const double late = read_meters(context);
  device_samples_.clear();
  device_uses_.clear();
  bool devices_used = false;
  for (const auto& devices : devices_) {
    devices->read(context, managers_, device_samples_);
    devices_used = devices->read_use(managers_, device_uses_) || devices_used;
  }
  const MutexLock account_lock(account_mutex_);
  account_.advance({.time = now,
                    .readings = readings_,
                    .node = use,
                    .managers = managers_,
                    .devices = device_samples_,
                    .timing = {.slip = cpu_use_.slip(), .late = late}});
  use_meter_.advance({.time = now,
                      .cpus_online = use.cpus_online,
                      .managers = managers_,
                      .sources = sources_,
                      .has_devices = !devices_.empty(),
                      .devices_read = devices_used,
                      .devices = device_uses_},
                     account_.units());
  updated_ = now;
  if (!std::exchange(sampled_, true)) {
    first_sample_.notify_all();
  }
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
