#include "ingest/updater/emission_factors.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStep = std::chrono::minutes(5);
constexpr milliseconds kBefore = std::chrono::hours(1);
// Points per series in an answer: Prometheus rejects queries with more than 11,000.
constexpr std::int64_t kPointsPerQuery = 10'000;

/// Returns the country whose factor is used, by provider.
Result<std::map<std::string, std::string>> find_providers(tsdb::Client& client,
                                                          const tsdb::Settings& settings,
                                                          const FactorRequest& request) {
  const milliseconds range(request.to_ms - request.from_ms + kBefore.count());
  CEEMS_TRY(
      answer,
      client.query(
          {.query = fmt::format(
               "max by (provider, country_code) (max_over_time(ceems_emissions_gCo2_kWh[{}]))",
               tsdb::duration_text(range)),
           .time_ms = request.to_ms,
           .lookback = milliseconds(0),
           .timeout = settings.query_timeout,
           .complete = !request.accept_incomplete}));
  std::map<std::string, std::set<std::string>> countries;
  for (const auto& series : answer.series) {
    const double value = series.samples.front().value;
    const std::string provider(series.labels.get("provider"));
    if (!provider.empty() && std::isfinite(value) && value > 0) {
      countries[provider].emplace(series.labels.get("country_code"));
    }
  }
  std::map<std::string, std::string> providers;
  for (const auto& [provider, codes] : countries) {
    // "ZZ" is not a country but stands for the whole world.
    if (codes.contains(request.country_code)) {
      providers[provider] = request.country_code;
    } else if (codes.size() == 1 && (request.country_code.empty() || *codes.begin() == "ZZ")) {
      providers[provider] = *codes.begin();
    }
  }
  return providers;
}

}  // namespace

double EmissionFactor::at(std::int64_t time_ms) const {
  const auto after = by_time.upper_bound(time_ms);
  return after == by_time.begin() ? after->second : std::prev(after)->second;
}

double EmissionFactor::mean(std::int64_t from_ms, std::int64_t to_ms) const {
  double sum = 0;
  std::size_t count = 0;
  for (auto it = by_time.upper_bound(from_ms); it != by_time.end() && it->first <= to_ms; ++it) {
    sum += it->second;
    ++count;
  }
  return count == 0 ? at(to_ms) : sum / static_cast<double>(count);
}

Result<std::vector<EmissionFactor>> read_emission_factors(tsdb::Client& client,
                                                          const tsdb::Settings& settings,
                                                          const FactorRequest& request) {
  CEEMS_TRY(providers, find_providers(client, settings, request));
  std::vector<EmissionFactor> factors;
  for (const auto& [provider, country] : providers) {
    EmissionFactor factor{.provider = provider, .by_time = {}};
    const std::string query = fmt::format(
        "avg(ceems_emissions_gCo2_kWh{{provider=\"{}\",country_code=\"{}\"}} > 0 < inf)",
        tsdb::quote_text(provider), tsdb::quote_text(country));
    std::int64_t begin = (request.from_ms - kBefore.count()) / kStep.count() * kStep.count();
    while (begin <= request.to_ms) {
      const std::int64_t end =
          std::min(request.to_ms, begin + (kPointsPerQuery - 1) * kStep.count());
      CEEMS_TRY(answer, client.query_range(query, begin, end, kStep));
      if (!request.accept_incomplete && !answer.incomplete.empty()) {
        return fail(ErrorCode::kUnavailable, "TSDB: incomplete answer: {}", answer.incomplete);
      }
      for (const auto& series : answer.series) {
        for (const auto& sample : series.samples) {
          if (std::isfinite(sample.value)) {
            factor.by_time.emplace(sample.time_ms, sample.value);
          }
        }
      }
      begin += kPointsPerQuery * kStep.count();
    }
    if (!factor.by_time.empty()) {
      factors.push_back(std::move(factor));
    }
  }
  return factors;
}

}  // namespace ceems::ingest
