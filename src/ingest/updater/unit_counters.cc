#include "ingest/updater/unit_counters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "ingest/updater/counter.h"
#include "ingest/updater/unit_samples.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kEnergy = "ceems_compute_unit_energy_joules_total";
constexpr std::string_view kIdleEnergy = "ceems_compute_unit_idle_energy_joules_total";
constexpr std::string_view kNotUsed = "ceems_compute_unit_unused_idle_energy_joules_total";
constexpr std::string_view kGpuBusy = "ceems_compute_unit_gpu_busy_seconds_total";
constexpr std::string_view kMemoryPeak = "ceems_compute_unit_memory_peak_bytes";
// The maximum number of raw samples per query, about 8 MB of JSON.
constexpr std::int64_t kSamplesPerQuery = 300'000;

bool is_gpu(std::string_view domain) {
  return domain.starts_with("gpu");
}

/// Computes what the units of one update used.
class Reader {
 public:
  Reader(tsdb::Client& client,
         const tsdb::Settings& settings,
         const CounterRequest& request,
         const std::vector<model::Unit>& units,
         std::stop_token stop)
      : samples_(client, settings, request, units, std::move(stop)),
        request_(request),
        window_(request.window),
        units_(units),
        uses_(units.size()) {}

  Result<std::vector<UnitUse>> read() {
    CEEMS_TRY(presence_of_all, samples_.find_presence());
    presence_ = std::move(presence_of_all);
    const std::int64_t samples_per_series = samples_.samples_per_series();
    std::vector<std::string> batch;
    std::int64_t samples = 0;
    for (const auto& [uuid, presence] : presence_) {
      const auto more = static_cast<std::int64_t>(presence.series) * samples_per_series;
      if (!batch.empty() && (samples + more > kSamplesPerQuery || batch.size() >= kUnitsPerQuery)) {
        CEEMS_TRY(read_batch(batch));
        batch.clear();
        samples = 0;
      }
      batch.push_back(uuid);
      samples += more;
    }
    CEEMS_TRY(read_batch(batch));
    return std::move(uses_);
  }

 private:
  static std::optional<double> sum_of(const std::optional<std::vector<Increment>>& increments) {
    if (!increments) {
      return std::nullopt;
    }
    double sum = 0;
    for (const auto& increment : *increments) {
      sum += increment.value;
    }
    return sum;
  }

  [[nodiscard]] std::vector<double> emissions_of(
      const std::optional<std::vector<Increment>>& increments) const {
    std::vector<double> sums(request_.factors.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (const auto& increment : increments.value_or(std::vector<Increment>{})) {
        sums[i] += increment.value * request_.factors[i].at(increment.time_ms);
      }
    }
    return sums;
  }

  Result<> read_batch(const std::vector<std::string>& uuids) {
    if (uuids.empty()) {
      return {};
    }
    CEEMS_TRY(user,
              samples_.raw_counter(series_of("ceems_compute_unit_cpu_user_seconds_total", uuids)));
    CEEMS_TRY(system, samples_.raw_counter(
                          series_of("ceems_compute_unit_cpu_system_seconds_total", uuids)));
    for (const auto& uuid : uuids) {
      for (const std::size_t index : samples_.places_of(uuid)) {
        const auto any = [](const UnitSeries&) { return true; };
        const auto user_seconds = sum_of(samples_.increments(user, index, any));
        const auto system_seconds = sum_of(samples_.increments(system, index, any));
        if (user_seconds || system_seconds) {
          uses_[index].cpu_seconds = user_seconds.value_or(0) + system_seconds.value_or(0);
        }
        double cpus = 0;
        for (const auto& [origin, count] : presence_.at(uuid).cpus) {
          cpus += std::max(count, 0.0);
        }
        if (cpus > 0) {
          uses_[index].cpus = cpus;
        }
      }
    }
    CEEMS_TRY(read_memory(uuids));
    CEEMS_TRY(read_memory_peaks(uuids));
    CEEMS_TRY(read_gpus(uuids));
    return read_energy(uuids);
  }

  /// The gauge is a maximum since the unit's start. Units that share a uuid have the samples of
  /// their own time.
  Result<> read_memory_peaks(const std::vector<std::string>& uuids) {
    std::vector<std::string> shared;
    std::vector<std::string> alone;
    for (const auto& uuid : uuids) {
      (samples_.places_of(uuid).size() > 1 ? shared : alone).push_back(uuid);
    }
    const auto take = [this](std::size_t index, double bytes) {
      auto& peak = uses_[index].peak_memory_bytes;
      if (bytes > 0) {
        peak = std::max(peak.value_or(0), bytes);
      }
    };
    if (!alone.empty()) {
      CEEMS_TRY(answer, samples_.over_range("max_over_time", series_of(kMemoryPeak, alone)));
      for (const auto& series : answer.series) {
        if (const std::string uuid(series.labels.get("uuid")); samples_.knows(uuid)) {
          take(samples_.places_of(uuid).front(), series.samples.front().value);
        }
      }
    }
    if (!shared.empty()) {
      CEEMS_TRY(peaks, samples_.raw(series_of(kMemoryPeak, shared)));
      for (const auto& [uuid, all] : peaks) {
        for (const std::size_t index : samples_.places_of(uuid)) {
          const auto [from, to] = samples_.span_of(index);
          for (const auto& series : all) {
            for (const auto& sample : series.counter.samples) {
              if (sample.time_ms > from && sample.time_ms <= to) {
                take(index, sample.value);
              }
            }
          }
        }
      }
    }
    return {};
  }

  Result<> read_gpus(const std::vector<std::string>& uuids) {
    CEEMS_TRY(busy, samples_.raw_counter(series_of(kGpuBusy, uuids)));
    for (const auto& [uuid, all] : busy) {
      for (const std::size_t index : samples_.places_of(uuid)) {
        const auto [from, to] = samples_.span_of(index);
        std::set<std::pair<std::string_view, std::string_view>> gpus;
        for (const auto& series : all) {
          const auto& samples = series.counter.samples;
          if (samples.front().time_ms <= to && samples.back().time_ms > from) {
            gpus.emplace(series.origin, series.part);
          }
        }
        if (!gpus.empty()) {
          uses_[index].gpus_seen = gpus.size();
          uses_[index].gpu_busy_seconds =
              sum_of(samples_.increments(busy, index, [](const UnitSeries&) { return true; }));
        }
      }
    }
    return {};
  }

  Result<> read_memory(const std::vector<std::string>& uuids) {
    CEEMS_TRY(used, samples_.raw(series_of("ceems_compute_unit_memory_used_bytes", uuids)));
    CEEMS_TRY(answer,
              samples_.over_range("max_over_time",
                                  series_of("ceems_compute_unit_memory_total_bytes", uuids)));
    std::map<std::string, std::map<std::string, double>, std::less<>> totals;
    for (const auto& series : answer.series) {
      double& total = totals[std::string(series.labels.get("uuid"))][origin_of(series.labels)];
      total = std::max(total, series.samples.front().value);
    }
    for (const auto& [uuid, all] : used) {
      std::map<std::string, std::vector<tsdb::Sample>> origins;
      for (const auto& series : all) {
        auto& samples = origins[series.origin];
        samples.insert(samples.end(), series.counter.samples.begin(), series.counter.samples.end());
      }
      for (auto& [origin, samples] : origins) {
        std::ranges::sort(samples, {}, &tsdb::Sample::time_ms);
      }
      for (const std::size_t index : samples_.places_of(uuid)) {
        uses_[index].memory_ratio = memory_ratio(index, origins, totals[uuid]);
      }
    }
    return {};
  }

  [[nodiscard]] std::optional<double> memory_ratio(
      std::size_t index,
      const std::map<std::string, std::vector<tsdb::Sample>>& origins,
      const std::map<std::string, double>& totals) const {
    const auto [from, to] = samples_.span_of(index);
    const model::Unit& unit = units_[index];
    const Life life{.start_ms = unit.started_at_ts, .end_ms = unit.ended_at_ts};
    double byte_ms = 0;
    double total = 0;
    std::int64_t unseen = std::numeric_limits<std::int64_t>::max();
    for (const auto& [origin, samples] : origins) {
      const auto area = gauge_area(samples, life, from, to, samples_.reach().count());
      const auto bytes = totals.find(origin);
      if (area && bytes != totals.end()) {
        byte_ms += area->value_ms;
        total += bytes->second;
        unseen = std::min(unseen, area->unseen_ms);
      }
    }
    const std::int64_t begin = std::max(window_.start_ms, unit.started_at_ts);
    const std::int64_t end =
        unit.ended_at_ts > 0 ? std::min(window_.end_ms, unit.ended_at_ts) : window_.end_ms;
    const double seen = static_cast<double>(end - begin - std::min(unseen, end - begin));
    if (total <= 0 || seen <= 0) {
      return std::nullopt;
    }
    return byte_ms / (total * seen);
  }

  Result<> read_energy(const std::vector<std::string>& uuids) {
    std::vector<std::string> with_node;
    std::vector<std::string> by_parts;
    for (const auto& uuid : uuids) {
      const auto& domains = presence_.at(uuid).domains;
      if (domains.empty()) {
        continue;
      }
      const bool all_have_node = std::ranges::all_of(
          domains, [](const auto& entry) { return entry.second.contains("node"); });
      (all_have_node ? with_node : by_parts).push_back(uuid);
    }
    if (!with_node.empty()) {
      CEEMS_TRY(energy,
                samples_.raw_counter(series_of(kEnergy, with_node, ",domain=~\"node|gpu.*\"")));
      add_energy(with_node, energy);
      CEEMS_TRY(read_idle_energy(with_node, ",domain=\"node\""));
    }
    if (!by_parts.empty()) {
      CEEMS_TRY(energy, samples_.raw_counter(series_of(kEnergy, by_parts)));
      add_energy(by_parts, energy);
      CEEMS_TRY(read_idle_energy(by_parts, ""));
    }
    return {};
  }

  /// The domain `node` holds the others, where it is known.
  Result<> read_idle_energy(const std::vector<std::string>& uuids, std::string_view domain) {
    CEEMS_TRY(idle, samples_.raw_counter(series_of(kIdleEnergy, uuids, domain)));
    CEEMS_TRY(not_used, samples_.raw_counter(series_of(kNotUsed, uuids, domain)));
    for (const auto& uuid : uuids) {
      const auto& domains = presence_.at(uuid).domains;
      const auto counts = [&domains](const UnitSeries& s) {
        const auto found = domains.find(s.origin);
        const bool node = found != domains.end() && found->second.contains("node");
        return (s.part == "node") == node;
      };
      const bool complete = origins_in(not_used, uuid) == origins_in(idle, uuid);
      for (const std::size_t index : samples_.places_of(uuid)) {
        uses_[index].idle_energy_joules = sum_of(samples_.increments(idle, index, counts));
        if (complete) {
          uses_[index].not_used_joules = sum_of(samples_.increments(not_used, index, counts));
        }
      }
    }
    return {};
  }

  static std::set<std::string_view> origins_in(const UnitHistory& history, std::string_view uuid) {
    std::set<std::string_view> origins;
    if (const auto found = history.find(uuid); found != history.end()) {
      for (const UnitSeries& series : found->second) {
        origins.insert(series.origin);
      }
    }
    return origins;
  }

  void add_energy(const std::vector<std::string>& uuids, const UnitHistory& energy) {
    for (const auto& uuid : uuids) {
      const auto& domains = presence_.at(uuid).domains;
      const auto node_known = [&domains](const UnitSeries& series) {
        const auto found = domains.find(series.origin);
        return found != domains.end() && found->second.contains("node");
      };
      for (const std::size_t index : samples_.places_of(uuid)) {
        const auto gpu =
            samples_.increments(energy, index, [](const UnitSeries& s) { return is_gpu(s.part); });
        const auto gpu_in_node = samples_.increments(
            energy, index, [&](const UnitSeries& s) { return is_gpu(s.part) && node_known(s); });
        auto rest = samples_.increments(energy, index, [&](const UnitSeries& s) {
          return node_known(s) ? s.part == "node" : !is_gpu(s.part);
        });
        UnitUse& use = uses_[index];
        use.gpu_energy_joules = sum_of(gpu);
        if (gpu) {
          use.gpu_emissions = emissions_of(gpu);
        }
        if (rest) {
          for (const auto& part : gpu_in_node.value_or(std::vector<Increment>{})) {
            rest->push_back({.time_ms = part.time_ms, .value = -part.value});
          }
          use.cpu_energy_joules = std::max(sum_of(rest).value_or(0), 0.0);
          use.cpu_emissions = emissions_of(rest);
        }
      }
    }
  }

  UnitSamples samples_;
  const CounterRequest& request_;
  const model::Window window_;
  const std::vector<model::Unit>& units_;
  std::map<std::string, UnitPresence> presence_;
  std::vector<UnitUse> uses_;
};

}  // namespace

Result<std::vector<UnitUse>> read_unit_counters(tsdb::Client& client,
                                                const tsdb::Settings& settings,
                                                const CounterRequest& request,
                                                const std::vector<model::Unit>& units,
                                                std::stop_token stop) {
  return Reader(client, settings, request, units, std::move(stop)).read();
}

FactorRequest factor_request(const tsdb::Settings& settings, model::Window window) {
  return {.from_ms = window.start_ms,
          .to_ms = window.end_ms + settle_time(settings).count(),
          .country_code = {},
          .accept_incomplete = false};
}

std::chrono::milliseconds settle_time(const tsdb::Settings& settings) {
  return settings.scrape_interval + std::chrono::seconds(10);
}

}  // namespace ceems::ingest
