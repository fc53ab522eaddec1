#include "energy/rules.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "exporter/energy/sampler.h"

namespace ceems::bench::energy {
namespace {

using exporter::energy::Domain;
using exporter::energy::Reading;

constexpr double kSlack = 1e-6;  // of a clock that counts in fractions
constexpr double kTick = 1;
constexpr double kYoungPause = 0.2;
constexpr double kScrape = 15;
constexpr double kStep = 0.05;  // of the simulation
constexpr double kKepler = 3;   // its interval
constexpr double kMicro = 1e6;
constexpr std::uint64_t kCounterRange = 262'143'328'850;  // max_energy_range_uj
constexpr double kGpuPhase = 0.4;
constexpr double kGpuRead = 0.03;  // mean seconds that the library takes
constexpr double kGpuGap = 120;    // energy of longer gaps is left out
constexpr double kPoll = 5;        // of the BMC
constexpr double kMaxStall = 2;
constexpr double kLongRead = std::chrono::duration<double>(exporter::energy::kHeldUp).count();

Clock::SteadyTime steady(double seconds) {
  using std::chrono::steady_clock;
  return Clock::SteadyTime(
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(seconds)) +
      std::chrono::hours(1));
}

Clock::SystemTime wall_clock(double seconds) {
  using std::chrono::system_clock;
  return Clock::SystemTime(
      std::chrono::duration_cast<system_clock::duration>(std::chrono::duration<double>(seconds)) +
      std::chrono::hours(24 * 365 * 50));
}

double sum_of_packages(const Node& node) {
  double sum = 0;
  for (std::size_t socket = 0; socket < node.hardware().sockets; ++socket) {
    sum += node.package_joules(socket);
  }
  return sum;
}

double sum_of_dram(const Node& node) {
  double sum = 0;
  for (std::size_t socket = 0; socket < node.hardware().sockets; ++socket) {
    sum += node.dram_joules(socket);
  }
  return sum;
}

bool alive(const Job& job, double time) {
  return job.begin <= time && time < job.end;
}

}  // namespace

OurRule::OurRule(const Node& node, const MeterSet& meters, const View& view)
    : meters_(meters),
      view_(view),
      begin_(node.time()),
      next_tick_(node.time()),
      random_(view.seed),
      next_young_(node.time()),
      next_scrape_(node.time()),
      next_poll_(node.time()),
      next_gpus_(node.time() + kGpuPhase),
      gpus_before_(node.hardware().gpus) {
  start(node);
}

void OurRule::start(const Node& node) {
  using exporter::energy::Method;
  account_ = std::make_unique<exporter::energy::Account>(exporter::energy::AccountOptions{});
  counters_.clear();
  cpu_use_ = exporter::energy::CpuUseMeter(topology_of(node.hardware()));
  held_ = {};
  units_.clear();
  gpus_before_.assign(node.hardware().gpus, std::nullopt);
  for (std::size_t socket = 0; socket < node.hardware().sockets; ++socket) {
    if (meters_.packages) {
      account_->add_source({.name = fmt::format("package-{}", socket),
                            .domain = Domain::kPackage,
                            .socket = static_cast<int>(socket)});
      counters_.emplace_back(kCounterRange, power_bound(Domain::kPackage, std::nullopt));
    }
    if (meters_.dram) {
      account_->add_source({.name = fmt::format("dram-{}", socket),
                            .domain = Domain::kDram,
                            .socket = static_cast<int>(socket)});
      counters_.emplace_back(kCounterRange, power_bound(Domain::kDram, std::nullopt));
    }
  }
  if (meters_.wall_period > 0) {
    account_->add_source({.name = "ipmi_dcmi",
                          .domain = Domain::kNode,
                          .method = Method::kMeasured,
                          .rank = exporter::energy::kIpmiRank});
  }
}

double OurRule::idle_watts() const {
  if (meters_.wall_period > 0) {
    return account_->idle_watts(Domain::kNode).value_or(0);
  }
  return account_->idle_watts(Domain::kPackage).value_or(0) +
         account_->idle_watts(Domain::kDram).value_or(0);
}

double OurRule::joules() const {
  return joules_before_ + account_->node_joules(Domain::kPackage) +
         account_->node_joules(Domain::kDram) + account_->node_joules(Domain::kGpu) +
         account_->node_joules(Domain::kOther);
}

void OurRule::advance(const Node& node, const WallMeter& wall) {
  const double now = node.time() + kSlack;
  if (now >= next_poll_) {
    next_poll_ += meters_.wall_period < kPoll ? kTick : kPoll;
    if (const auto watts = wall.watts()) {
      held_.set({.watts = *watts, .time = steady(node.time())});
    }
  }
  if (now >= next_gpus_) {
    next_gpus_ += kTick + std::exponential_distribution(1 / kGpuRead)(gpu_random_);
    read_gpus(node);
  }
  if (view_.events || now >= next_young_) {
    next_young_ += kYoungPause;
    see_units(node);
  }
  if (!sample_ && now >= next_tick_) {
    next_tick_ += kTick;
    if (view_.restart_after && now >= begin_ + *view_.restart_after) {
      view_.restart_after.reset();
      collect();
      charges_before_ = charges_;
      joules_before_ = joules();
      const exporter::energy::Learned learned = account_->learned();
      start(node);
      if (view_.stored) {
        account_->restore(learned);
      }
    }
    // It is late where the sample before took longer than a tick.
    sample_ = plan(std::max(next_tick_ - kTick, node.time() - kStep));
  }
  proceed(node);
}

/// Seconds between two steps of a sample.
double OurRule::pause() {
  const Sampling& sampling = view_.sampling;
  const auto exponential = [this](double mean) {
    return mean > 0 ? std::exponential_distribution(1 / mean)(random_) : 0;
  };
  const bool stalls = std::bernoulli_distribution(sampling.stall)(random_);
  return exponential(sampling.pause) +
         (stalls ? std::min(exponential(sampling.stall_seconds), kMaxStall) : 0);
}

OurRule::Parts OurRule::plan(double time) {
  Parts parts;
  const double late = view_.sampling.late;
  const double begin = time + (late > 0 ? std::exponential_distribution(1 / late)(random_) : 0);
  parts.units_read = begin + pause();
  parts.meters_after = parts.units_read;
  for (int attempt = 0; attempt < exporter::energy::kCounterReads; ++attempt) {
    parts.stat_clock = parts.meters_after + pause();
    parts.stat_read = parts.stat_clock + pause();
    parts.meters_clock = parts.stat_read + pause();
    parts.meters_read = parts.meters_clock + pause();
    parts.meters_after = parts.meters_read + pause();
    if (parts.meters_after - parts.stat_clock <= kLongRead) {
      break;
    }
  }
  next_tick_ = std::max(next_tick_, begin + kTick);
  return parts;
}

/// Reads what is due.
void OurRule::proceed(const Node& node) {
  if (!sample_) {
    return;
  }
  const double now = node.time() + kSlack;
  Parts& parts = *sample_;
  if (!parts.units && now >= parts.units_read) {
    parts.units = snapshot(node, parts.units_read);
  }
  if (!parts.stat && now >= parts.stat_read) {
    parts.stat = true;
    read_stat(node, parts, std::max(0.0, node.time() - parts.stat_read));
  }
  if (now >= parts.meters_read) {
    read_meters(node, parts, std::max(0.0, node.time() - parts.meters_read));
    sample_.reset();
    if (now >= next_scrape_) {
      next_scrape_ += kScrape;
      collect();
    }
  }
}

/// `back`: how many seconds ago, within the last step of the simulation.
void OurRule::see(const Node& node, const Job& job, double back) {
  Seen& seen = units_[job.number];
  const double used = std::max(0.0, job.cpu_seconds - back * job.busy_cpus);
  const double unit = job.busy_cpus * view_.sampling.cpu_update;
  seen.cpu_seconds = std::max(seen.cpu_seconds, unit > 0 ? std::floor(used / unit) * unit : used);
  seen.last_seen = std::min(node.time() - back, job.end);
  if (seen.cpus == nullptr) {
    seen.cpus = std::make_shared<const std::vector<int>>(cpus_of(job, node.hardware()));
  }
}

/// Looks at the units that are known, or at all if births and deaths are reported.
void OurRule::see_units(const Node& node) {
  const auto& jobs = node.jobs();
  if (view_.events) {
    for (std::size_t i = first_; i < jobs.size() && jobs[i].begin <= node.time(); ++i) {
      if (alive(jobs[i], node.time() - kStep)) {
        see(node, jobs[i], 0);
      }
    }
    return;
  }
  for (const auto& [number, seen] : units_) {
    if (alive(jobs[number], node.time())) {
      see(node, jobs[number], 0);
    }
  }
}

exporter::UnitSnapshot OurRule::snapshot(const Node& node, double time) {
  exporter::UnitSnapshot snapshot;
  snapshot.manager = "slurm";
  snapshot.taken = steady(time);
  snapshot.wall = wall_clock(time);
  const auto& jobs = node.jobs();
  for (std::size_t i = first_; i < jobs.size() && jobs[i].begin <= node.time(); ++i) {
    const Job& job = jobs[i];
    const bool running = alive(job, node.time());
    if (running) {
      see(node, job, std::max(0.0, node.time() - time));
    }
    const auto seen = units_.find(i);
    if (seen == units_.end()) {
      continue;  // it ended before anybody looked, or was reported as ended
    }
    exporter::Unit& unit = snapshot.units.emplace_back();
    unit.id = unit.uuid = std::to_string(i);
    unit.stats.cpu_user_seconds = seen->second.cpu_seconds;
    if (view_.reservations) {
      unit.stats.cpu_set = seen->second.cpus;
      unit.stats.reserved_cpus = static_cast<double>(job.cores * node.hardware().threads);
      unit.stats.memory_total_bytes = job.memory_limit;
    }
    unit.stats.memory_used_bytes =
        running ? static_cast<std::uint64_t>(job.memory_bytes) : std::uint64_t{0};
    unit.started = wall_clock(job.begin);
    unit.last_seen = wall_clock(seen->second.last_seen);
    unit.ended = !running;
    if (!running) {
      units_.erase(seen);
    }
  }
  while (first_ < jobs.size() && jobs[first_].end <= node.time() && !units_.contains(first_)) {
    ++first_;
  }
  return snapshot;
}

/// Asks the library of the GPUs, at its own pace.
void OurRule::read_gpus(const Node& node) {
  const double since = node.time() - begin_;
  gpus_ = {.taken = node.time(), .joules = {}, .load = {}};
  for (std::size_t gpu = 0; gpu < node.hardware().gpus; ++gpu) {
    const bool silent = std::ranges::any_of(view_.gpu_gaps, [&](const GpuGap& gap) {
      return gap.from <= since && since < gap.until && gap.first <= gpu &&
             gpu < gap.first + gap.count;
    });
    gpus_.joules.push_back(silent ? std::nullopt : std::optional(node.gpu_joules(gpu)));
    gpus_.load.push_back(node.gpu_load(gpu));
  }
}

/// The devices that answer, with what they drew since the last sample that had a new reading.
std::vector<exporter::energy::DeviceSample> OurRule::devices(const Node& node, double time) {
  std::vector<exporter::energy::DeviceSample> samples;
  for (std::size_t gpu = 0; gpu < gpus_.joules.size(); ++gpu) {
    auto& before = gpus_before_[gpu];
    if (!gpus_.joules[gpu] && !before) {
      continue;  // its existence is not known
    }
    exporter::energy::DeviceSample& sample = samples.emplace_back();
    sample.source = {.name = fmt::format("GPU-{}", gpu), .domain = Domain::kGpu};
    sample.silent = !gpus_.joules[gpu];
    if (!sample.silent) {
      sample.fresh = steady(gpus_.taken);
      if (before && before->second < gpus_.taken && gpus_.taken - before->second <= kGpuGap) {
        sample.joules = std::round((*gpus_.joules[gpu] - before->first) * 1000) / 1000;
        sample.seconds = gpus_.taken - before->second;
      }
      before = {*gpus_.joules[gpu], gpus_.taken};
    }
    sample.utilisation = std::round(100 * gpus_.load[gpu]) / 100;
    sample.total_use = *sample.utilisation;
    for (const Job& job : node.jobs()) {
      if (alive(job, time) && job.first_gpu <= gpu && gpu < job.first_gpu + job.gpus) {
        sample.holders.push_back({.manager = "slurm",
                                  .cgrouphostname = "",
                                  .uuid = std::to_string(job.number),
                                  .alloc = 1,
                                  .use = sample.total_use});
      }
    }
  }
  return samples;
}

void OurRule::read_stat(const Node& node, const Parts& parts, double back) {
  const std::vector<host::BusyCpu> cpus = node.busy_cpus(back);
  std::uint64_t ticks = 0;
  for (const host::BusyCpu& cpu : cpus) {
    ticks += cpu.ticks;
  }
  const auto all = static_cast<std::uint64_t>(parts.stat_read * 100) * cpus.size();
  busy_cpus_ = cpu_use_.advance(ticks, cpus, steady(parts.stat_clock), all);
}

/// Completes the sample.
void OurRule::read_meters(const Node& node, const Parts& parts, double back) {
  const double time = parts.meters_clock;
  const Hardware& hardware = node.hardware();
  const exporter::UnitSnapshot& units = *parts.units;
  const exporter::energy::ManagerUnits manager{.manager = units.manager, .snapshot = &units};
  const bool jumped = view_.jump_after && node.time() >= begin_ + *view_.jump_after;
  const double update = view_.sampling.energy_update;
  back += update > 0 ? std::fmod(node.time() - back, update) : 0;
  std::vector<std::optional<Reading>> readings;
  const auto add_counter = [&](double joules) {
    const auto raw = static_cast<std::uint64_t>(joules * kMicro) % kCounterRange;
    readings.emplace_back(Reading{.joules = counters_[readings.size()].advance(raw, steady(time)),
                                  .fresh = steady(time),
                                  .idle_watts = {}});
  };
  for (std::size_t socket = 0; socket < hardware.sockets; ++socket) {
    if (meters_.packages) {
      add_counter(node.package_joules(socket) - back * node.power().package[socket] +
                  (jumped ? view_.jump_joules : 0));
    }
    if (meters_.dram) {
      add_counter(node.dram_joules(socket) - back * node.power().dram[socket]);
      if (node.time() < begin_ + view_.dram_from) {
        readings.back().reset();
      }
    }
  }
  if (meters_.wall_period > 0) {
    const auto joules = held_.advance(steady(time));
    readings.push_back(joules ? std::optional(Reading{.joules = *joules,
                                                      .fresh = held_.fresh().value_or(steady(0)),
                                                      .idle_watts = {},
                                                      .watts = held_.watts()})
                              : std::nullopt);
  }
  exporter::energy::Sample sample;
  sample.time = steady(time);
  sample.readings = readings;
  sample.managers = {&manager, 1};
  sample.node.cpus_online =
      static_cast<double>(hardware.sockets * hardware.cores * hardware.threads);
  sample.node.memory_total_bytes = hardware.memory_bytes;
  sample.node.busy_cpus = busy_cpus_;
  sample.node.cpus = cpu_use_.cpus();
  sample.node.sockets = cpu_use_.sockets();
  sample.timing = {.slip = cpu_use_.slip(),
                   .late = parts.meters_after - parts.meters_clock,
                   .early = parts.meters_clock - parts.stat_clock};
  const auto gpus = devices(node, node.time());
  sample.devices = gpus;
  account_->advance(sample);
}

void OurRule::collect() {
  for (const auto& unit : account_->units()) {
    const auto number = std::stoull(unit->uuid);
    const auto before = charges_before_.find(number);
    charges_[number] =
        unit->joules(Domain::kNode) + (before == charges_before_.end() ? 0 : before->second);
  }
  account_->mark_scraped();
}

void ReferenceRule::advance(const Node& node, const WallMeter& wall) {
  if (node.time() + kSlack < next_scrape_) {
    return;
  }
  next_scrape_ += kScrape;
  Last now{.busy_seconds = node.busy_seconds(),
           .package_joules = sum_of_packages(node),
           .dram_joules = sum_of_dram(node),
           .cpu_seconds = {}};
  for (const Job& job : node.jobs()) {
    if (job.begin > node.time()) {
      break;
    }
    if (alive(job, node.time())) {
      now.cpu_seconds[job.number] = job.cpu_seconds;
    }
  }
  if (last_) {
    const double busy = now.busy_seconds - last_->busy_seconds;
    const double package = (now.package_joules - last_->package_joules) / kScrape;
    const double dram = meters_.dram ? (now.dram_joules - last_->dram_joules) / kScrape : 0;
    const auto count = static_cast<double>(now.cpu_seconds.size());
    for (const auto& [number, cpu] : now.cpu_seconds) {
      const auto before = last_->cpu_seconds.find(number);
      if (before == last_->cpu_seconds.end()) {
        continue;  // a rate needs two samples
      }
      const double by_cpu = (cpu - before->second) / busy;
      const double by_memory = node.jobs()[number].memory_bytes / node.memory_used();
      double watts = package * by_cpu + dram * by_memory;
      if (meters_.wall_period > 0) {
        const double cpu_part = meters_.packages ? package / (package + dram) : 1;
        watts = wall.watts().value_or(0) *
                (0.9 * cpu_part * by_cpu + 0.9 * (1 - cpu_part) * by_memory + 0.1 / count);
      }
      charges_[number] += watts * kScrape;
    }
  }
  last_ = std::move(now);
}

void KeplerRule::advance(const Node& node, const WallMeter& wall) {
  wall_joules_ += wall.watts().value_or(0) * kStep;
  if (node.time() + kSlack < next_) {
    return;
  }
  next_ += kKepler;
  Last now{.busy_seconds = node.busy_seconds(), .joules = {}, .cpu_seconds = {}};
  now.joules[0] = meters_.packages ? sum_of_packages(node) : 0;
  now.joules[1] = meters_.dram ? sum_of_dram(node) : 0;
  now.joules[2] = wall_joules_;
  for (const Job& job : node.jobs()) {
    if (job.begin > node.time()) {
      break;
    }
    if (alive(job, node.time())) {
      now.cpu_seconds[job.number] = job.cpu_seconds;
    }
  }
  if (last_) {
    std::array<double, kParts> joules{};
    for (std::size_t part = 0; part < kParts; ++part) {
      joules.at(part) = now.joules.at(part) - last_->joules.at(part);
    }
    joules[2] = std::max(0.0, joules[2] - joules[0] - joules[1]);
    const double busy = now.busy_seconds - last_->busy_seconds;
    const auto count = static_cast<double>(now.cpu_seconds.size());
    for (std::size_t part = 0; part < kParts; ++part) {
      auto& idle = idle_watts_.at(part);
      if (joules.at(part) > 0) {
        idle = std::min(idle.value_or(joules.at(part) / kKepler), joules.at(part) / kKepler);
      }
      const double below = std::min(joules.at(part), idle.value_or(0) * kKepler);
      for (const auto& [number, cpu] : now.cpu_seconds) {
        const auto before = last_->cpu_seconds.find(number);
        const double used = cpu - (before == last_->cpu_seconds.end() ? 0 : before->second);
        charges_[number] += below / count + (joules.at(part) - below) * used / busy;
      }
    }
  }
  last_ = std::move(now);
}

}  // namespace ceems::bench::energy
