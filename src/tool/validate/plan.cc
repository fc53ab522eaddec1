#include "tool/validate/plan.h"

#include <algorithm>
#include <set>
#include <utility>

namespace ceems::tool::validate {
namespace {

constexpr double kIdlePart = 0.5;    // of the time of a load
constexpr double kSettlePart = 0.2;  // of the time of a load
constexpr double kMinIdleSeconds = 3;

class Planner {
 public:
  explicit Planner(const std::vector<std::vector<int>>& cores) : cores_(cores) {}

  /// A load on whole cores, unless one of the same kind and size is planned.
  void add(LoadClass load, std::size_t first, std::size_t count) {
    if (sizes_.emplace(load, count).second) {
      plan_.push_back({on(load, first, count)});
    }
  }
  void add_thread(LoadClass load) { plan_.push_back({{load, {cores_.front().front()}}}); }
  void add_both(Assignment left, Assignment right) {
    plan_.push_back({std::move(left), std::move(right)});
  }
  [[nodiscard]] Assignment on(LoadClass load, std::size_t first, std::size_t count) const {
    Assignment out{.load = load, .cpus = {}};
    for (std::size_t i = first; i < first + count; ++i) {
      out.cpus.insert(out.cpus.end(), cores_[i].begin(), cores_[i].end());
    }
    return out;
  }
  std::vector<Loads> take() { return std::move(plan_); }

 private:
  const std::vector<std::vector<int>>& cores_;
  std::set<std::pair<LoadClass, std::size_t>> sizes_;
  std::vector<Loads> plan_;
};

}  // namespace

std::vector<Loads> plan_loads(const std::vector<std::vector<int>>& cores) {
  const std::size_t all = cores.size();
  const std::size_t quarter = std::max<std::size_t>(1, all / 4);
  const std::size_t half = std::max<std::size_t>(1, all / 2);
  Planner planner(cores);
  if (cores.front().size() > 1) {
    planner.add_thread(LoadClass::kScalar);
  }
  planner.add(LoadClass::kCompute, 0, 1);
  planner.add(LoadClass::kCompute, 0, quarter);
  planner.add(LoadClass::kCompute, 0, all);
  planner.add(LoadClass::kScalar, 0, quarter);
  planner.add(LoadClass::kScalar, 0, all);
  planner.add(LoadClass::kMemory, 0, half);
  if (all > 1) {
    planner.add(LoadClass::kMemory, quarter, quarter);
    planner.add_both(planner.on(LoadClass::kCompute, 0, quarter),
                     planner.on(LoadClass::kMemory, quarter, quarter));
  }
  return planner.take();
}

double Times::total(std::size_t loads) const {
  const double change = settle_seconds + idle_seconds;
  return change + static_cast<double>(loads) * (settle_seconds + load_seconds + change);
}

Result<Times> divide(double duration, std::size_t loads, double settle) {
  // The first idle time, and for each load: settle, measure, settle, idle.
  const auto count = static_cast<double>(loads);
  const double settles = 2 * count + 1;
  const double measured = kIdlePart + count * (1 + kIdlePart);
  const double seconds = settle < 0 ? duration / (measured + settles * kSettlePart)
                                    : (duration - settles * settle) / measured;
  const Times times{.load_seconds = seconds,
                    .idle_seconds = kIdlePart * seconds,
                    .settle_seconds = settle < 0 ? kSettlePart * seconds : settle};
  if (times.idle_seconds < kMinIdleSeconds) {
    const double shortest =
        kMinIdleSeconds / kIdlePart * (measured + (settle < 0 ? settles * kSettlePart : 0)) +
        std::max(0.0, settle) * settles;
    return fail(ErrorCode::kInvalidArgument,
                "{} loads need {:.0f} s or more with this time to settle", loads, shortest + 0.5);
  }
  return times;
}

}  // namespace ceems::tool::validate
