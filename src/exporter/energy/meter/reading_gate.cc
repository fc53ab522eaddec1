#include "exporter/energy/meter/reading_gate.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "exporter/energy/meter/power_model.h"
#include "host/read_file.h"

namespace ceems::exporter::energy {
namespace {

/// By how much the truth may exceed the model's full load, which does not know the whole machine.
constexpr double kModelMargin = 4;
/// The least that is taken as a limit of a node, because a model of a small part may be far off.
constexpr double kLeastLimit = 1'000;
/// The largest accelerators are specified with 1,000 to 1,400 W.
constexpr double kWattsPerAccelerator = 1'500;
/// What a node may draw for each watt of its GPUs.
constexpr double kDeviceMargin = 1.5;

/// The packages' part of a server's power in the model.
constexpr double kPackageShare = 0.65;
/// The wall's watts for each watt of packages, memory and GPUs.
constexpr double kWallPerPart = 1.1;
/// A load that varies by less, as a part of the whole, does not teach a slope.
constexpr double kLoadSpread = 0.05;

constexpr double kPartsSeconds = 20;
constexpr double kSlowSeconds = 300;
/// A line that is shorter says less than the lines of other sources; one that is even shorter,
/// nothing.
constexpr double kOwnLine = 60;
constexpr double kAnyLine = 5;
/// A shorter line does not say that a reading is a jump.
constexpr double kLongLine = 120;
/// A step of a counter that is larger than its line says by this factor and joules is a jump.
constexpr double kCounterJump = 2.5;
constexpr double kCounterSlack = 20;
/// A node draws at least this part of what the model says when idle.
constexpr double kLeastIdlePart = 0.125;
/// A shorter interval says little about the power.
constexpr double kShortSeconds = 0.1;
constexpr int kStillReads = 3;

/// A counter of the node may be below its parts by its own error for kBelowSeconds.
constexpr double kBelowPart = 0.8;
constexpr double kBelowSeconds = 60;

/// Two readings of one counter that is updated every millisecond differ by up to this time.
constexpr double kSkewSeconds = 0.003;
/// Steps in microjoules.
constexpr double kEqual = 2e-6;
constexpr double kDifferentPart = 0.01;
constexpr int kDifferentSteps = 3;

bool is_part(const SourceInfo& info) {
  return info.domain != Domain::kNode;
}

bool is_wall(const SourceInfo& info) {
  return info.domain == Domain::kNode && info.method != Method::kModelled;
}

void follow(double& mean, double value, double seconds, double memory) {
  mean = mean > 0 ? mean + (1 - std::exp(-seconds / memory)) * (value - mean) : value;
}

bool is_accelerator(std::string_view pci_class) {
  return pci_class.starts_with("0x1200") || pci_class.starts_with("0x0302") ||
         pci_class.starts_with("0x0380");
}

}  // namespace

struct ReadingGate::Interval {
  Clock::SteadyTime now{};
  double seconds = 0;
  bool slept = false;
  bool awake = false;  // the CPUs work
};

NodeLimits node_limits(const Meters& meters, const host::Paths& paths) {
  NodeLimits limits;
  if (const ModelMeter* model = find_model(meters)) {
    limits.idle_watts = model->model().idle_watts;
    limits.full_watts = model->model().full_watts;
  }
  const std::string root = (paths.sys / "bus/pci/devices").string();
  if (const auto devices = host::list_directory(root)) {
    for (const std::string& device : *devices) {
      const auto text =
          host::read_file(fmt::format("{}/{}/class", root, device), host::kMaxValueSize);
      limits.accelerators += text && is_accelerator(trim(*text)) ? 1 : 0;
    }
  }
  return limits;
}

double most_node_watts(const NodeLimits& limits) {
  if (limits.full_watts <= 0) {
    return kMaxNodeWatts;
  }
  return std::max(kLeastLimit, kModelMargin * limits.full_watts) +
         kWattsPerAccelerator * limits.accelerators;
}

ReadingGate::ReadingGate(const Meters& meters, const NodeLimits& limits) : limits_(limits) {
  for (const auto& meter : meters) {
    sources_.emplace_back(meter->source());
    packages_ += meter->source().domain == Domain::kPackage ? 1 : 0;
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    for (std::size_t j = i + 1; j < sources_.size(); ++j) {
      if (is_part(*sources_[i].info) && sources_[i].info->domain == sources_[j].info->domain) {
        pairs_.push_back({.first = i, .second = j});
      }
    }
  }
  expect();
}

void ReadingGate::judge(const GateSample& sample) {
  Interval interval{.now = sample.time};
  interval.seconds =
      last_ ? std::max(0.0, std::chrono::duration<double>(sample.time - *last_).count()) : 0;
  interval.slept =
      sample.suspended - std::exchange(suspended_, sample.suspended) >= CounterUnwrap::kMinSuspend;
  interval.awake = sample.utilisation.value_or(0) > 0;
  last_ = sample.time;
  started_ = started_.value_or(sample.time);
  for (Source& source : sources_) {
    if (is_part(*source.info)) {
      source.load = load_of(source, sample);
    }
    if (source.info->domain == Domain::kPackage) {
      follow(source.mean_load, assumed_watts(source), interval.seconds, kPartsSeconds);
    }
  }
  judge_parts(sample, interval);
  note_parts(sample, interval);
  judge_node(sample, interval);
  expect();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const std::optional<Reading>& reading = sample.readings[i];
    const bool estimated = reading && reading->method == Method::kDerived;
    sources_[i].gate.report(sample.time, estimated ? "an estimate" : "");
  }
}

/// The use of the part's socket, 0...1.
std::optional<double> ReadingGate::load_of(const Source& source, const GateSample& sample) const {
  const auto socket = static_cast<std::size_t>(source.info->socket);
  if (source.info->socket >= 0 && socket < sample.sockets.size() &&
      sample.sockets[socket].cores_max > 0) {
    return sample.sockets[socket].cores / sample.sockets[socket].cores_max;
  }
  return sample.utilisation;
}

/// Whether a counter moves as it must.
bool ReadingGate::lives(Source& source, const Reading& reading, const Interval& interval) {
  const bool step = reading.joules > 0;
  ++source.reads;
  source.moved = source.moved || step;
  if (step || interval.slept) {
    source.moving += step ? interval.seconds : 0;
    source.still = 0;
    source.still_reads = 0;
  } else if (source.reads > 1 && interval.awake) {
    source.moving = 0;
    source.still += interval.seconds;
    ++source.still_reads;
  }
  const double limit = reading.fresh == interval.now ? kStill : kStillLate;
  if (source.still >= limit && source.still_reads >= kStillReads) {
    source.frozen = true;
  } else if (source.moving >= kAlive) {
    source.frozen = false;
  }
  return !source.frozen;
}

/// Judges the source by itself.
void ReadingGate::take(Source& source, std::optional<Reading>& reading, const Interval& interval) {
  source.trusted = false;
  source.elsewhere = reading ? reading->elsewhere : source.elsewhere;
  source.counts = source.counts || (reading && !reading->watts);
  const bool value = reading && !reading->assumed;
  source.absent = value ? 0 : source.absent + interval.seconds;
  source.lost = !value && (source.absent >= kGap || (!source.counts && source.fresh));
  if (source.lost) {
    source.gate.exclude(reading ? Doubt::kJump : Doubt::kUnreadable);
  }
  if (source.gate.frozen() && !source.gate.changed()) {
    source.line = {};  // it has never told the truth
  }
  if (!reading || source.lost) {
    source.moving = 0;
    return;
  }
  if (reading->watts) {
    const auto refused = source.gate.refused_since();
    const bool over =
        refused && std::chrono::duration<double>(interval.now - *refused).count() >= kHold;
    source.frozen = source.gate.frozen();
    source.trusted = !over && !source.frozen;
    source.moved = source.moved || source.trusted;
  } else {
    source.trusted = lives(source, *reading, interval);
    if (source.frozen) {
      source.gate.exclude(Doubt::kFrozen);
    }
  }
  if (source.trusted) {
    source.fresh = reading->fresh;
    reading->method = source.info->method;
  }
}

/// Learns the line of a source that is believed from what it shows.
void ReadingGate::learn(Source& source, double joules, const Interval& interval) {
  if (source.frozen || source.lost || interval.slept) {
    source.unlearned = 0;
    return;
  }
  const double seconds = source.unlearned + interval.seconds;
  if (joules <= 0 || seconds < kShortSeconds || !source.load) {
    source.unlearned = seconds;
    return;
  }
  source.unlearned = 0;
  const bool late = is_wall(*source.info) && !source.counts;
  if (!source.gate.same()) {
    // A power may be late.
    source.line.add(late ? source.mean_load : *source.load, joules / seconds, seconds);
  }
}

/// Fills what a counter does not show yet, and takes it back when the counter shows it.
void ReadingGate::settle(Source& source,
                         std::optional<Reading>& reading,
                         const Interval& interval) const {
  const bool usable = source.counts && !source.frozen && !source.lost && !interval.slept &&
                      interval.seconds <= kMaxInterval;
  const auto watts = usable && source.load && source.line.seconds() >= kOwnLine
                         ? std::optional(by_line(source, *source.load))
                         : std::nullopt;
  if (!watts) {
    source.advanced = 0;
    return;
  }
  const double expected = *watts * interval.seconds;
  if (!reading || reading->assumed || reading->joules <= 0) {
    source.advanced += expected;
    source.trusted = true;
    reading = Reading{.joules = expected,
                      .fresh = source.fresh.value_or(started_.value_or(Clock::SteadyTime{})),
                      .idle_watts = {},
                      .method = source.info->method};
    return;
  }
  const double more = std::max(0.0, reading->joules - expected);
  reading->joules -= std::min(std::exchange(source.advanced, 0), more);
  const bool jumped = source.line.seconds() >= kLongLine &&
                      reading->joules > kCounterJump * expected + kCounterSlack;
  if (jumped && !source.jumped) {
    source.gate.exclude(Doubt::kJump);
    reading->joules = expected;
  }
  source.jumped = jumped;
}

void ReadingGate::compare(Pair& pair,
                          std::span<std::optional<Reading>> readings,
                          const Interval& interval) {
  const auto& first = readings[pair.first];
  const auto& second = readings[pair.second];
  const SourceInfo& info = *sources_[pair.first].info;
  if (first && second && first->raw_uj && second->raw_uj && first->joules > 0 &&
      second->joules > 0) {
    const double most = std::max(first->joules, second->joules);
    const double difference = std::abs(first->joules - second->joules);
    const double skew = interval.seconds > 0 ? kSkewSeconds * most / interval.seconds : 0;
    const double apart =
        std::abs(static_cast<double>(*first->raw_uj) - static_cast<double>(*second->raw_uj)) * 1e-6;
    const bool one_place = info.socket >= 0 && info.socket == sources_[pair.second].info->socket;
    if (difference > std::max(skew, kDifferentPart * most)) {
      pair.equal = 0;
      pair.seconds = 0;
      ++pair.different;
    } else if (difference <= kEqual && (one_place || apart <= skew)) {
      ++pair.equal;
      pair.seconds += interval.seconds;
      pair.different = 0;
    }
    const bool equal = pair.equal >= kEqualSteps && (one_place || pair.seconds >= kEqualSeconds);
    const bool one = pair.one ? pair.different < kDifferentSteps : equal;
    if (one && !std::exchange(pair.one, one)) {
      sources_[pair.second].line = {};  // what it taught is of the other
    }
    pair.one = one;
  }
  Source& twin = sources_[pair.second];
  twin.twin = twin.twin || pair.one;
  twin.apart = twin.apart || (pair.one && info.socket >= 0 && twin.info->socket >= 0 &&
                              info.socket != twin.info->socket);
}

void ReadingGate::judge_parts(const GateSample& sample, const Interval& interval) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    if (is_part(*sources_[i].info)) {
      take(sources_[i], sample.readings[i], interval);
      sources_[i].twin = sources_[i].apart = false;
    }
  }
  for (Pair& pair : pairs_) {
    compare(pair, sample.readings, interval);
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    auto& reading = sample.readings[i];
    if (!is_part(*source.info)) {
      continue;
    }
    if (source.twin) {
      source.trusted = false;
      source.gate.exclude(Doubt::kMirrored);
      if (reading) {
        reading->joules = 0;  // the other counts
      }
    } else {
      const double joules = reading && !reading->assumed ? reading->joules : 0;
      const bool assumed = reading && reading->assumed;
      settle(source, reading, interval);
      if (!assumed) {
        learn(source, joules, interval);
      }
    }
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    auto& reading = sample.readings[i];
    const bool gone = source.lost || source.apart;  // and its socket draws power nevertheless
    const bool counted = source.trusted || (source.twin && !source.apart);
    if (is_part(*source.info) && reading) {
      reading->elsewhere = source.elsewhere;
    }
    if (!is_part(*source.info) || counted || (!reading && !gone)) {
      continue;
    }
    const auto watts = interval.seconds <= kMaxInterval ? estimate(source) : std::nullopt;
    const bool held = reading && reading->watts && !source.frozen;
    if (watts) {
      reading = Reading{.joules = *watts * interval.seconds,
                        .fresh = source.fresh.value_or(started_.value_or(Clock::SteadyTime{})),
                        .idle_watts = {},
                        .elsewhere = source.elsewhere,
                        .method = Method::kDerived};
    } else if (!held) {
      reading.reset();
    }
  }
}

void ReadingGate::note_parts(const GateSample& sample, const Interval& interval) {
  double joules = sample.device_joules;
  std::size_t parts = 0;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const Source& source = sources_[i];
    if (is_part(*source.info)) {
      const std::optional<Reading>& reading = sample.readings[i];
      joules += reading && !reading->elsewhere ? reading->joules : 0;
      parts += source.moved && !source.twin ? 1 : 0;
    }
  }
  devices_ = std::max(devices_, sample.devices);
  if (std::exchange(parts_, parts + devices_) != parts_) {
    for (Source& source : sources_) {
      source.line = is_part(*source.info) ? source.line : PowerLine();
    }
  }
  if (interval.seconds < kShortSeconds) {
    return;
  }
  parts_now_ = joules / interval.seconds;
  follow(parts_mean_, parts_now_, interval.seconds, kPartsSeconds);
  follow(parts_slow_, parts_now_, interval.seconds, kSlowSeconds);
  follow(devices_mean_, sample.device_joules / interval.seconds, interval.seconds, kPartsSeconds);
  devices_most_ = std::max(devices_most_, devices_mean_);
  const double range =
      limits_.full_watts > limits_.idle_watts ? limits_.full_watts - limits_.idle_watts : 0;
  model_now_ = limits_.idle_watts + range * sample.utilisation.value_or(0);
  follow(model_mean_, model_now_, interval.seconds, kPartsSeconds);
}

/// Whether a counter of the whole node shows at least what its parts show.
bool ReadingGate::holds_parts(Source& source,
                              double joules,
                              double parts,
                              const Interval& interval) {
  if (interval.seconds >= kShortSeconds) {
    follow(source.watts, joules / interval.seconds, interval.seconds, kPartsSeconds);
  }
  const bool less = source.watts < kBelowPart * parts;
  source.below_seconds = std::clamp(
      source.below_seconds + (less ? interval.seconds : -interval.seconds), 0.0, kBelowSeconds);
  source.below =
      source.below_seconds >= kBelowSeconds || (source.below && source.below_seconds > 0);
  if (source.below) {
    source.line = {};
    source.gate.exclude(Doubt::kTooLow);
  }
  return !source.below;
}

void ReadingGate::judge_node(const GateSample& sample, const Interval& interval) {
  const double parts = std::min({parts_now_, parts_mean_, parts_slow_});
  bool any = false;
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    auto& reading = sample.readings[i];
    if (!is_wall(*source.info)) {
      continue;
    }
    source.load = parts_ > 0 ? parts_now_ : model_now_;
    source.mean_load = parts_ > 0 ? parts_mean_ : model_mean_;
    take(source, reading, interval);
    double joules = 0;
    const bool assumed = reading && reading->assumed;
    if (reading && source.trusted && !assumed) {
      joules = reading->watts ? *reading->watts * interval.seconds : reading->joules;
    }
    settle(source, reading, interval);
    if (reading && !reading->watts) {
      source.trusted = source.trusted && holds_parts(source, reading->joules, parts, interval);
      if (!source.moved && source.reads > 1) {
        source.trusted = false;  // it has to show that it works before the node depends on it
      }
    }
    if (!assumed) {
      learn(source, joules, interval);
    }
    any = any || source.trusted;
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    auto& reading = sample.readings[i];
    if (!is_wall(*source.info) || source.trusted || (!reading && !source.lost)) {
      continue;
    }
    const auto watts = any || interval.seconds > kMaxInterval ? std::nullopt : estimate(source);
    const bool held = reading && reading->watts && !source.frozen && !any;
    if (watts) {
      reading = Reading{.joules = *watts * interval.seconds,
                        .fresh = source.fresh.value_or(started_.value_or(Clock::SteadyTime{})),
                        .idle_watts = {},
                        .method = Method::kDerived};
      any = true;
    } else if (!held) {
      reading.reset();
    }
  }
}

double ReadingGate::slope_of(Domain domain) const {
  if (domain == Domain::kNode) {
    return parts_ > 0 ? kWallPerPart : 1;
  }
  return domain == Domain::kPackage && packages_ > 0
             ? kPackageShare * std::max(0.0, limits_.full_watts - limits_.idle_watts) / packages_
             : 0;
}

/// What a package draws by the model.
double ReadingGate::assumed_watts(const Source& source) const {
  return kPackageShare * limits_.idle_watts / packages_ +
         slope_of(Domain::kPackage) * source.load.value_or(0);
}

double ReadingGate::by_line(const Source& source, double load) const {
  const bool wall = is_wall(*source.info);
  return source.line.at(load, slope_of(source.info->domain),
                        wall ? kLoadSpread * load : kLoadSpread);
}

std::optional<double> ReadingGate::estimate(const Source& source) const {
  const Domain domain = source.info->domain;
  if (!source.load) {
    return std::nullopt;
  }
  const double load = *source.load;
  if (source.line.seconds() >= kOwnLine) {
    return by_line(source, load);
  }
  if (domain == Domain::kNode) {
    // The other sources of the node are not like it. The model counts no more by itself.
    const bool modelled = parts_ == 0 && source.moved && limits_.full_watts > 0;
    return modelled ? std::optional(model_now_) : std::nullopt;
  }
  double sum = 0;
  double count = 0;
  for (const Source& other : sources_) {
    if (&other != &source && other.info->domain == domain && other.trusted &&
        other.line.seconds() >= kAnyLine) {
      sum += by_line(other, load);
      ++count;
    }
  }
  if (count > 0) {
    return sum / count;
  }
  if (source.line.seconds() >= kAnyLine) {
    return by_line(source, load);
  }
  const bool modelled = domain == Domain::kPackage && source.moved && limits_.full_watts > 0;
  return modelled ? std::optional(assumed_watts(source)) : std::nullopt;
}

void ReadingGate::expect() {
  const double most = most_node_watts(limits_) + kDeviceMargin * devices_most_;
  for (Source& source : sources_) {
    const bool wall = is_wall(*source.info);
    Expected expected{.most_watts = wall ? most : power_bound(source.info->domain).ceiling,
                      .by_line_only = !wall};
    if (source.info->domain == Domain::kPackage && limits_.full_watts > limits_.idle_watts) {
      expected.load_watts = source.mean_load;
      expected.load_now = assumed_watts(source);
      expected.load_range = {kPackageShare * limits_.idle_watts / packages_,
                             kPackageShare * limits_.full_watts / packages_};
      expected.least_watts = kLeastIdlePart * kPackageShare * limits_.idle_watts / packages_;
    }
    if (wall) {
      expected.least_watts = kLeastIdlePart * limits_.idle_watts;
      expected.parts_watts = std::min({parts_now_, parts_mean_, parts_slow_});
      if (parts_ > 0 || limits_.full_watts > limits_.idle_watts) {
        expected.load_watts = parts_ > 0 ? parts_mean_ : model_mean_;
        expected.load_now = parts_ > 0 ? parts_now_ : model_now_;
      }
    }
    if (wall && source.load && source.line.seconds() >= kOwnLine) {
      expected.watts =
          std::minmax(by_line(source, *source.load), by_line(source, source.mean_load));
    }
    source.gate.expect(expected);
  }
}

}  // namespace ceems::exporter::energy
