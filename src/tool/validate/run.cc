#include "tool/validate/run.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "tool/validate/outcomes.h"

namespace ceems::tool::validate {
namespace {

constexpr double kMaxStepSeconds = 60;
constexpr int kMinStepReadings = 3;
constexpr double kThousandths = 1000;
constexpr int kMaxDiscoverySeconds = 10;  // the exporter looks for cgroups every few seconds

/// The file has watts to the thousandth.
double rounded(double value) {
  return std::round(value * kThousandths) / kThousandths + 0.0;
}

struct TimedWindow {
  Window window;
  std::vector<std::pair<double, double>> times;  ///< begin and end of each step
};

/// The exporter and the CPUs at one moment.
struct Moment {
  double time = 0;
  ExporterPage page;
  CpuUse use;
};

Result<Moment> moment_of(TestedNode& node) {
  CEEMS_TRY(page, node.page());
  CEEMS_TRY(use, node.cpu_use());
  return Moment{.time = node.now(), .page = std::move(page), .use = use};
}

double joules_of(const ExporterPage& page, const std::string& uuid) {
  const auto found = page.units.find(uuid);
  return found == page.units.end() ? 0 : found->second;
}

/// Stops what was started when it leaves the scope.
class RunningLoads {
 public:
  explicit RunningLoads(TestedNode& node) : node_(node) {}
  RunningLoads(const RunningLoads&) = delete;
  RunningLoads& operator=(const RunningLoads&) = delete;
  ~RunningLoads() {
    for (const std::string& uuid : uuids_) {
      static_cast<void>(node_.stop(uuid));  // an earlier error is already on its way
    }
  }
  Result<> start(const std::string& uuid, const Assignment& load) {
    CEEMS_TRY(node_.start(uuid, load));
    uuids_.push_back(uuid);
    return {};
  }
  Result<> stop() {
    while (!uuids_.empty()) {
      const std::string uuid = std::move(uuids_.back());
      uuids_.pop_back();
      CEEMS_TRY(node_.stop(uuid));
    }
    return {};
  }
  [[nodiscard]] const std::vector<std::string>& uuids() const { return uuids_; }

 private:
  TestedNode& node_;
  std::vector<std::string> uuids_;
};

/// The number of different readings, one after the other, and their mean and deviation.
void set_wall(Step& step, const std::vector<double>& watts) {
  double sum = 0;
  for (std::size_t i = 0; i < watts.size(); ++i) {
    sum += watts[i];
    step.distinct += i == 0 || watts[i] != watts[i - 1] ? 1 : 0;
  }
  const double mean = sum / static_cast<double>(watts.size());
  double squares = 0;
  for (const double value : watts) {
    squares += (value - mean) * (value - mean);
  }
  step.readings = static_cast<int>(watts.size());
  step.wall_watts = rounded(mean);
  step.wall_deviation = rounded(std::sqrt(squares / static_cast<double>(watts.size() - 1)));
}

std::unexpected<Error> not_shown(const std::string& uuid) {
  return fail(ErrorCode::kUnavailable,
              "the exporter does not show the cgroup /ceems_validate/{}: start one with "
              "--collector.energy --collector.cgroup "
              "--collector.cgroup.pattern='^/ceems_validate/(?P<id>[^/]+)$'",
              uuid);
}

class Runner {
 public:
  Runner(TestedNode& node, int cpus, const RunOptions& options)
      : node_(node), cpus_(cpus), options_(options) {}

  Result<> run(const std::vector<Loads>& plan) {
    CEEMS_TRY(try_out(plan.front()));
    CEEMS_TRY(first_idle());
    for (const Loads& loads : plan) {
      CEEMS_TRY(load(loads));
      CEEMS_TRY(idle());
    }
    return {};
  }
  Result<std::vector<Window>> with_meter();

 private:
  /// Fails at once where the first load cannot run or be seen, and not after minutes.
  Result<> try_out(const Loads& loads);
  Result<> first_idle();
  Result<> idle() {
    begin({});
    CEEMS_TRY(node_.wait(options_.times.settle_seconds));
    return measure(options_.times.idle_seconds, {});
  }
  Result<> load(const Loads& loads);
  std::string next_name() { return fmt::format("{}-{}", options_.prefix, ++started_); }
  void begin(std::vector<Part> parts);
  Result<> measure(double seconds, const std::vector<std::string>& uuids);
  [[nodiscard]] Result<Step> step_between(const Moment& first,
                                          const Moment& last,
                                          const std::vector<std::string>& uuids) const;

  TestedNode& node_;
  int cpus_;
  const RunOptions& options_;
  std::vector<TimedWindow> windows_;
  int started_ = 0;
};

void Runner::begin(std::vector<Part> parts) {
  if (options_.progress) {
    std::string name;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      name += (i == 0 ? "" : " and ") + name_of({parts[i]}, 0);
    }
    options_.progress(windows_.size(), parts.empty() ? "idle" : name);
  }
  windows_.push_back({.window = {.parts = std::move(parts), .steps = {}}, .times = {}});
}

Result<> Runner::try_out(const Loads& loads) {
  RunningLoads running(node_);
  CEEMS_TRY(running.start(next_name(), loads.front()));
  for (int second = 0; second < kMaxDiscoverySeconds; ++second) {
    CEEMS_TRY(node_.wait(1));
    CEEMS_TRY(page, node_.page());
    if (page.units.contains(running.uuids().front())) {
      return running.stop();
    }
  }
  return not_shown(running.uuids().front());
}

Result<> Runner::first_idle() {
  static_cast<void>(node_.busiest());
  CEEMS_TRY(idle());
  for (const Step& step : windows_.front().window.steps) {
    if (step.others_busy > options_.max_busy) {
      return fail(ErrorCode::kUnavailable,
                  "{:.0f} % of the CPU time is used without a load ({}): validate on a drained "
                  "node, or try it with --allow-busy",
                  100 * step.others_busy, node_.busiest());
    }
  }
  return {};
}

Result<> Runner::load(const Loads& loads) {
  std::vector<Part> parts;
  for (const Assignment& load : loads) {
    parts.push_back({.load = load.load, .cpus = static_cast<int>(load.cpus.size())});
  }
  begin(std::move(parts));
  RunningLoads running(node_);
  for (const Assignment& load : loads) {
    CEEMS_TRY(running.start(next_name(), load));
  }
  CEEMS_TRY(node_.wait(options_.times.settle_seconds));
  CEEMS_TRY(measure(options_.times.load_seconds, running.uuids()));
  return running.stop();
}

Result<> Runner::measure(double seconds, const std::vector<std::string>& uuids) {
  const int steps = std::max(1, static_cast<int>(std::ceil(seconds / kMaxStepSeconds)));
  CEEMS_TRY(first, moment_of(node_));
  for (int i = 0; i < steps; ++i) {
    CEEMS_TRY(node_.wait(seconds / steps));
    CEEMS_TRY(last, moment_of(node_));
    CEEMS_TRY(step, step_between(first, last, uuids));
    windows_.back().window.steps.push_back(std::move(step));
    windows_.back().times.emplace_back(first.time, last.time);
    first = std::move(last);
  }
  return {};
}

Result<Step> Runner::step_between(const Moment& first,
                                  const Moment& last,
                                  const std::vector<std::string>& uuids) const {
  const double seconds = last.time - first.time;
  Step step;
  step.seconds = rounded(seconds);
  const double node_joules = last.page.node_joules() - first.page.node_joules();
  if (seconds <= 0 || node_joules < 0) {
    return fail(
        ErrorCode::kUnavailable, "{}",
        seconds <= 0 ? "the clock of the node was set back" : "the exporter was started again");
  }
  step.node_watts = rounded(node_joules / seconds);
  double own = 0;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!last.page.units.contains(uuids[i])) {
      return not_shown(uuids[i]);
    }
    const double joules = joules_of(last.page, uuids[i]) - joules_of(first.page, uuids[i]);
    step.charged_watts.push_back(rounded(std::max(0.0, joules) / seconds));
    own += windows_.back().window.parts[i].cpus;
  }
  const double all = last.use.all - first.use.all;
  const double busy = all > 0 ? (last.use.busy - first.use.busy) / all : 0;
  step.others_busy = rounded(std::clamp(busy - own / cpus_, 0.0, 1.0));
  return step;
}

Result<std::vector<Window>> Runner::with_meter() {
  CEEMS_TRY(readings, node_.readings());
  std::vector<Window> out;
  for (TimedWindow& timed : windows_) {
    for (std::size_t i = 0; i < timed.times.size(); ++i) {
      const auto [begin, end] = timed.times[i];
      std::vector<double> watts;
      for (const WattReading& reading : readings) {
        if (reading.time > begin && reading.time <= end) {
          watts.push_back(reading.watts);
        }
      }
      if (watts.size() < kMinStepReadings) {
        return fail(ErrorCode::kUnavailable,
                    "{}: the meter gave {} readings in {:.0f} s, expected {} or more: measure "
                    "longer, or correct the times of the meter (--meter.csv-offset)",
                    name_of(timed.window.parts, 0), watts.size(), end - begin, kMinStepReadings);
      }
      set_wall(timed.window.steps[i], watts);
    }
    out.push_back(std::move(timed.window));
  }
  return out;
}

}  // namespace

Result<std::vector<Window>> run_loads(TestedNode& node,
                                      const std::vector<Loads>& plan,
                                      int cpus,
                                      const RunOptions& options) {
  Runner runner(node, cpus, options);
  CEEMS_TRY(runner.run(plan));
  return runner.with_meter();
}

}  // namespace ceems::tool::validate
