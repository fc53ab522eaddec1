#include "exporter/collectors/power_series.h"

#include <fmt/format.h>

namespace ceems::exporter {

PowerSeries::PowerSeries(PowerNames names,
                         std::string_view stem,
                         const std::array<std::string, 4>& helps,
                         const std::vector<std::string>& labels) {
  const auto add_set = [&](std::string_view infix) {
    const auto desc = [&](std::string_view quantity, const std::string& help) {
      return metrics::Desc(fmt::format("{}{}_{}_watts", stem, infix, quantity), help,
                           metrics::Type::kGauge, labels);
    };
    sets_.push_back({desc("current", helps[0]), desc("min", helps[1]), desc("max", helps[2]),
                     desc("avg", helps[3])});
  };
  if (names != PowerNames::kNew) {
    add_set("");
  }
  if (names != PowerNames::kOld) {
    add_set("_power");
  }
}

void PowerSeries::add(metrics::Sink& sink,
                      const PowerValues& watts,
                      std::initializer_list<std::string_view> label_values) const {
  const std::array values{watts.current, watts.minimum, watts.maximum, watts.average};
  for (const auto& set : sets_) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values.at(i) > 0) {
        sink.add(set.at(i), values.at(i), label_values);
      }
    }
  }
}

}  // namespace ceems::exporter
