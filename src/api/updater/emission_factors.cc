#include "api/updater/emission_factors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace ceems::api {

Result<std::map<std::string, double>> read_emission_factors(tsdb::Client& client,
                                                            const tsdb::Settings& settings,
                                                            model::Window window,
                                                            const std::string& country_code) {
  // Factors change slowly; a look-back of 5 min bridges missed scrapes in short windows.
  const std::chrono::milliseconds range(
      std::max<std::int64_t>(window.end_ms - window.start_ms, 300'000));
  auto answer = client.query({.query = fmt::format("avg_over_time(ceems_emissions_gCo2_kWh[{}])",
                                                   tsdb::duration_text(range)),
                              .time_ms = window.end_ms,
                              .lookback = std::chrono::milliseconds(0),
                              .timeout = settings.query_timeout});
  if (!answer) {
    return fail(std::move(answer).error());
  }
  // Several exporters may export the same factor: their mean.
  struct Mean {
    double sum = 0;
    int count = 0;
  };
  std::map<std::string, std::map<std::string, Mean>> providers;
  for (const auto& series : answer->series) {
    const double value = series.samples.front().value;
    const std::string provider(series.labels.get("provider"));
    if (!provider.empty() && std::isfinite(value) && value > 0) {
      Mean& mean = providers[provider][std::string(series.labels.get("country_code"))];
      mean.sum += value;
      ++mean.count;
    }
  }
  std::map<std::string, double> factors;
  for (const auto& [provider, countries] : providers) {
    // "ZZ" is no country: a factor for the whole world.
    auto found = countries.find(country_code);
    if (found == countries.end() && countries.size() == 1 &&
        (country_code.empty() || countries.begin()->first == "ZZ")) {
      found = countries.begin();
    }
    if (found != countries.end()) {
      factors[provider] = found->second.sum / found->second.count;
    }
  }
  return factors;
}

}  // namespace ceems::api
