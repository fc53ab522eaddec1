#include "exporter/energy/account/cpu_use.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ceems::exporter::energy {
namespace {

constexpr double kTicksPerSecond = 100;  // USER_HZ: fixed in the kernel's interface (proc_stat(5))

/// Threads that are busy for less than this part of the time are rather busy with chores of the
/// operating system, each at a time of its own; others with a job, all at once.
constexpr double kChores = 0.05;

/// By how much the CPUs' use may differ from that of all. Copies of /proc often have lines of CPUs
/// that do not move.
constexpr double kMaxDeviation = 0.1;

/// Kernels account idle and busy CPUs by different clocks, so that the sum may go a little faster
/// or slower than time. If it differs by more than this, it is not used as a clock.
constexpr double kMaxRate = 0.1;
/// The same for use to be computed with it.
constexpr double kMaxSureRate = 0.03;
/// Counters that are less late than this, in seconds, are in time: they are rounded.
constexpr double kMinSlip = 0.03;

}  // namespace

CpuUseMeter::CpuUseMeter(host::CpuTopology topology, double second_thread)
    : second_thread_(std::clamp(second_thread, 0.0, 1.0)) {
  set_topology(std::move(topology));
}

void CpuUseMeter::set_topology(host::CpuTopology topology) {
  topology_ = std::move(topology);
  sockets_.assign(std::max<std::size_t>(topology_.packages.size(), 1), SocketUse{});
  cores_.resize(topology_.cores);
}

bool CpuUseMeter::knows(std::span<const host::BusyCpu> cpus) const {
  return std::ranges::all_of(
      cpus, [this](const host::BusyCpu& cpu) { return place_of(cpu.cpu).socket >= 0; });
}

host::CpuPlace CpuUseMeter::place_of(int cpu) const {
  const auto index = static_cast<std::size_t>(cpu);
  return index < topology_.cpus.size() ? topology_.cpus[index] : host::CpuPlace{};
}

std::optional<double> CpuUseMeter::advance(std::uint64_t ticks,
                                           std::span<const host::BusyCpu> cpus,
                                           Clock::SteadyTime now,
                                           std::uint64_t all_ticks) {
  const double passed = last_ ? std::chrono::duration<double>(now - *last_).count() : 0;
  slip_ = find_slip(all_ticks, cpus.size(), passed);
  const bool sure = std::abs(slip_) >= kMinSlip && std::abs(recent_.value() - 1) <= kMaxSureRate;
  const double seconds = sure ? passed + slip_ : passed;
  const std::uint64_t before = std::exchange(ticks_, ticks);
  last_ = now;
  take_cpus(cpus, seconds);
  add_up();
  if (seconds <= 0 || ticks < before) {
    cpus_.clear();
    return std::nullopt;
  }
  const double busy = static_cast<double>(ticks - before) / kTicksPerSecond / seconds;
  double sum = 0;
  for (const SocketUse& socket : sockets_) {
    sum += socket.busy;
  }
  // The counters are rounded to ticks, each CPU's by itself.
  const double rounding = 2 * static_cast<double>(cpus.size() + 1) / kTicksPerSecond / seconds;
  if (std::abs(sum - busy) > kMaxDeviation * busy + rounding) {
    cpus_.clear();
  }
  return busy;
}

double CpuUseMeter::find_slip(std::uint64_t all_ticks, std::size_t cpus, double seconds) {
  const std::uint64_t before = std::exchange(all_ticks_, all_ticks);
  const std::size_t count = std::exchange(cpu_count_, cpus);
  if (!(seconds > 0) || before == 0 || all_ticks <= before || cpus == 0 || cpus != count) {
    return 0;
  }
  const double counted =
      static_cast<double>(all_ticks - before) / kTicksPerSecond / static_cast<double>(cpus);
  const double rate = rate_.value();
  rate_.add(counted, seconds);
  recent_.add(counted, seconds);
  return std::abs(recent_.value() - 1) > kMaxRate ? 0 : counted / rate - seconds;
}

void CpuUseMeter::Rate::add(double counted_seconds, double passed_seconds) {
  const double keep = std::exp(-passed_seconds / seconds);
  counted = keep * counted + counted_seconds;
  passed = keep * passed + passed_seconds;
}

void CpuUseMeter::take_cpus(std::span<const host::BusyCpu> cpus, double seconds) {
  ++round_;
  std::ranges::fill(sockets_, SocketUse{});
  std::ranges::fill(cores_, Core{});
  std::ranges::fill(cpus_, CpuUse{});
  for (const host::BusyCpu& cpu : cpus) {
    const auto index = static_cast<std::size_t>(cpu.cpu);
    if (index >= counters_.size()) {
      counters_.resize(index + 1);
    }
    Counter& counter = counters_[index];
    const bool follows = counter.round + 1 == round_ && cpu.ticks >= counter.ticks;
    const auto ticks = follows ? static_cast<double>(cpu.ticks - counter.ticks) : 0;
    counter = {.ticks = cpu.ticks, .round = round_};
    if (seconds <= 0) {
      continue;
    }
    if (index >= cpus_.size()) {
      cpus_.resize(index + 1);
    }
    const host::CpuPlace place = place_of(cpu.cpu);
    CpuUse& use = cpus_[index];
    use.socket = std::max(place.socket, 0);
    use.busy = std::min(1.0, ticks / kTicksPerSecond / seconds);
    if (place.core >= 0) {
      Core& core = cores_[static_cast<std::size_t>(place.core)];
      core.busy += use.busy;
      core.most = std::max(core.most, use.busy);
      core.threads += 1;
    }
  }
}

/// Busy cores of one core.
double CpuUseMeter::cores_of(const Core& core) const {
  const double others = core.busy - core.most;
  const double each = core.threads > 1 ? others / (core.threads - 1) : 0;
  const double at_once = each / (each + kChores);
  // The part of `others` in which the busiest thread rests.
  const double alone = (1 - core.most) * (1 - at_once);
  return core.most + others * (alone + second_thread_ * (1 - alone));
}

void CpuUseMeter::add_up() {
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    CpuUse& use = cpus_[i];
    if (use.socket < 0) {
      continue;
    }
    const host::CpuPlace place = place_of(static_cast<int>(i));
    double full = 1;
    use.cores = use.busy;
    if (place.core >= 0) {
      const Core& core = cores_[static_cast<std::size_t>(place.core)];
      use.cores = core.busy > 0 ? use.busy / core.busy * cores_of(core) : 0;
      full = (1 + second_thread_ * (core.threads - 1)) / core.threads;
    }
    SocketUse& socket = sockets_[static_cast<std::size_t>(use.socket)];
    socket.cpus += 1;
    socket.busy += use.busy;
    socket.cores += use.cores;
    socket.cores_max += full;
  }
}

}  // namespace ceems::exporter::energy
