#include "tool/validate/outcomes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace ceems::tool::validate {
namespace {

constexpr double kMinSeconds = 30;     // of a load, for evidence
constexpr double kNotableBusy = 0.03;  // of the CPU time in idle windows
constexpr int kMinReadings = 5;        // in one window
constexpr double kSmallWeight = 1e-9;

/// Means over the steps of a window, by their length.
struct Means {
  double seconds = 0;
  double wall = 0;
  double wall_error = 0;  ///< standard error
  double node = 0;
  double others_busy = 0;
  int distinct = 0;
  std::vector<double> charged;
};

Means means_of(const Window& window) {
  Means means;
  means.charged.resize(window.parts.size());
  double variance = 0;  // of the sum of watts times seconds
  for (const Step& step : window.steps) {
    means.seconds += step.seconds;
    means.wall += step.seconds * step.wall_watts;
    means.node += step.seconds * step.node_watts;
    means.others_busy += step.seconds * step.others_busy;
    means.distinct += step.distinct;
    variance += std::pow(step.seconds * step.wall_deviation, 2) / step.distinct;
    for (std::size_t i = 0; i < means.charged.size(); ++i) {
      means.charged[i] += step.seconds * step.charged_watts[i];
    }
  }
  for (double* sum : {&means.wall, &means.node, &means.others_busy}) {
    *sum /= means.seconds;
  }
  for (double& sum : means.charged) {
    sum /= means.seconds;
  }
  means.wall_error = std::sqrt(variance) / means.seconds;
  return means;
}

std::vector<Means> all_means(const Record& record) {
  std::vector<Means> means;
  means.reserve(record.windows.size());
  for (const Window& window : record.windows) {
    means.push_back(means_of(window));
  }
  return means;
}

double idle_around(const std::vector<Means>& means, std::size_t window) {
  return (means[window - 1].wall + means[window + 1].wall) / 2;
}

/// Mean watts that loads of a kind and size add when they run alone.
class Alone {
 public:
  Alone(const Record& record, const std::vector<Means>& means) {
    for (std::size_t i = 1; i + 1 < means.size(); i += 2) {
      if (const auto& parts = record.windows[i].parts; parts.size() == 1) {
        auto& [sum, count] = added_[{parts.front().load, parts.front().cpus}];
        sum += means[i].wall - idle_around(means, i);
        ++count;
      }
    }
  }
  /// 1 if none ran alone, which shares equally.
  [[nodiscard]] double weight(const Part& part) const {
    const auto found = added_.find({part.load, part.cpus});
    return found == added_.end()
               ? 1.0
               : std::max(kSmallWeight, found->second.first / found->second.second);
  }

 private:
  std::map<std::pair<LoadClass, int>, std::pair<double, int>> added_;
};

ClassError error_of(std::string name, const std::vector<const Outcome*>& some) {
  ClassError error{.name = std::move(name), .runs = static_cast<int>(some.size())};
  for (const Outcome* outcome : some) {
    error.bias += outcome->percent();
    error.error += std::abs(outcome->percent());
    error.share_error += std::abs(outcome->share_percent());
  }
  for (double* sum : {&error.bias, &error.error, &error.share_error}) {
    *sum = std::round(10 * *sum / error.runs) / 10 + 0.0;  // no -0
  }
  return error;
}

std::string part_name(const Part& part) {
  return fmt::format("{}, {} CPU{}", to_string(part.load), part.cpus, part.cpus == 1 ? "" : "s");
}

}  // namespace

std::string name_of(const std::vector<Part>& parts, std::size_t part) {
  if (parts.empty()) {
    return "idle";
  }
  std::string name = part_name(parts.at(part));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != part) {
      name += " beside " + part_name(parts[i]);
    }
  }
  return name;
}

Result<std::vector<Outcome>> outcomes_of(const Record& record) {
  const std::vector<Means> means = all_means(record);
  const Alone alone(record, means);
  std::vector<Outcome> outcomes;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const std::vector<Part>& parts = record.windows[i].parts;
    const Means& mean = means[i];
    if (parts.empty()) {
      outcomes.push_back({.name = "idle",
                          .idle = mean.wall,
                          .uncertainty = mean.wall_error,
                          .due = mean.wall,
                          .charged = mean.node,
                          .seen = mean.node / mean.wall});
      continue;
    }
    double weights = 0;
    for (const Part& part : parts) {
      weights += alone.weight(part);
    }
    const double idle = idle_around(means, i);
    const double added = mean.wall - idle;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const double own = added * alone.weight(parts[k]) / weights;
      const double due = idle * parts[k].cpus / record.node.cpus + own;
      std::string name = name_of(parts, k);
      if (due <= 0) {
        return fail(ErrorCode::kInvalidArgument,
                    "{}: the node drew {:.1f} W more when it was idle: something else ran on it",
                    name, -added);
      }
      outcomes.push_back({.load = parts.size() > 1 ? LoadClass::kMixed : parts[k].load,
                          .name = std::move(name),
                          .idle = idle,
                          .added = own,
                          .uncertainty = std::hypot(mean.wall_error, means[i - 1].wall_error / 2,
                                                    means[i + 1].wall_error / 2),
                          .due = due,
                          .charged = mean.charged[k],
                          .seen = mean.node / mean.wall});
    }
  }
  return outcomes;
}

std::vector<ClassError> errors_of(const std::vector<Outcome>& outcomes) {
  std::vector<ClassError> errors;
  std::vector<const Outcome*> loads;
  for (std::size_t i = 0; i < kLoadClasses; ++i) {
    const auto load = static_cast<LoadClass>(i);
    std::vector<const Outcome*> some;
    for (const Outcome& outcome : outcomes) {
      if (outcome.load == load) {
        some.push_back(&outcome);
      }
    }
    if (!some.empty()) {
      errors.push_back(error_of(std::string(to_string(load)), some));
    }
    if (load != LoadClass::kIdle) {
      loads.insert(loads.end(), some.begin(), some.end());
    }
  }
  if (!loads.empty()) {
    errors.push_back(error_of("all", loads));
  }
  return errors;
}

std::vector<std::string> shortcomings_of(const Record& record) {
  const std::vector<Means> means = all_means(record);
  double shortest = INFINITY;
  double busy = 0;
  int fewest = kMinReadings;
  for (std::size_t i = 0; i < means.size(); ++i) {
    const bool idle = record.windows[i].parts.empty();
    shortest = idle ? shortest : std::min(shortest, means[i].seconds);
    busy = std::max(busy, means[i].others_busy);
    fewest = std::min(fewest, means[i].distinct);
  }
  std::vector<std::string> found;
  if (shortest < kMinSeconds) {
    found.push_back(fmt::format("a load ran for {:.0f} s only: {:.0f} s or more are needed",
                                shortest, kMinSeconds));
  }
  if (busy > kNotableBusy) {
    found.push_back(fmt::format("other processes used up to {:.0f} % of the CPU time", 100 * busy));
  }
  if (fewest < kMinReadings) {
    found.push_back(fmt::format(
        "the meter showed only {} different readings in one window: it averages, or the windows "
        "are too short",
        fewest));
  }
  if (record.node.virtual_machine) {
    found.emplace_back("the machine is virtual, so no meter shows its power");
  }
  if (!record.independent) {
    found.emplace_back(
        "the exporter reads the same meter: the error of the split is checked, not that of the "
        "meter");
  }
  return found;
}

}  // namespace ceems::tool::validate
