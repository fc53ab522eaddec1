#include "exporter/energy/meter/cray_meter.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "exporter/energy/meter/counter_unwrap.h"
#include "host/cray_pm_counters.h"

namespace ceems::exporter::energy {
namespace {

constexpr std::uint64_t kMicrojoules = 1'000'000;
constexpr std::uint64_t kMaxCrayJoules = std::numeric_limits<std::uint64_t>::max() / kMicrojoules;

/// `fresh` is when the node controller's time stamp last changed. While the controller is not
/// available the stamp stands still and the age grows; the next change counts for the whole time.
class CrayEnergyMeter final : public EnergyMeter {
 public:
  explicit CrayEnergyMeter(std::string sys)
      : sys_(std::move(sys)),
        source_{.name = "cray",
                .domain = Domain::kNode,
                .method = Method::kMeasured,
                .rank = kCrayRank},
        counter_(std::numeric_limits<std::uint64_t>::max(), power_bound(Domain::kNode)) {}

  [[nodiscard]] const SourceInfo& source() const override { return source_; }

  Result<Reading> read(const MeterContext& context) override {
    auto reading = host::read_cray_counter(sys_, "node", "energy");
    if (!reading || reading->value == 0 || reading->value > kMaxCrayJoules) {
      counter_.miss(context, source_);
      return fail(reading ? Error{ErrorCode::kUnavailable, "cray/pm_counters: no energy reading"}
                          : std::move(reading).error());
    }
    const std::optional<std::uint64_t> timestamp_us = reading->timestamp_us;
    if (timestamp_us && timestamp_us == timestamp_us_) {
      return Reading{.joules = 0, .fresh = fresh_, .idle_watts = {}};
    }
    fresh_ = context.now;
    timestamp_us_ = timestamp_us;
    return counter_.advance(reading->value * kMicrojoules, context, source_);
  }
  [[nodiscard]] std::optional<Rejected> rejected() const override { return counter_.rejected(); }

 private:
  std::string sys_;
  SourceInfo source_;
  MeteredCounter counter_;
  std::optional<std::uint64_t> timestamp_us_;
  Clock::SteadyTime fresh_{};
};

}  // namespace

std::shared_ptr<EnergyMeter> find_cray_meter(const std::string& sys) {
  return host::read_cray_counter(sys, "node", "energy") ? std::make_shared<CrayEnergyMeter>(sys)
                                                        : nullptr;
}

}  // namespace ceems::exporter::energy
