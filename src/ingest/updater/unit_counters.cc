#include "ingest/updater/unit_counters.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "ingest/updater/counter.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kCpus = "ceems_compute_unit_cpus";
constexpr std::string_view kEnergy = "ceems_compute_unit_energy_joules_total";
constexpr std::string_view kIdleEnergy = "ceems_compute_unit_idle_energy_joules_total";
constexpr std::string_view kGpuBusy = "ceems_compute_unit_gpu_busy_seconds_total";
constexpr std::string_view kMemoryPeak = "ceems_compute_unit_memory_peak_bytes";
// The maximum number of raw samples per query, about 8 MB of JSON.
constexpr std::int64_t kSamplesPerQuery = 300'000;
constexpr std::size_t kUnitsPerQuery = 200;
constexpr milliseconds kPart = std::chrono::hours(1);
constexpr milliseconds kMinLookback = std::chrono::minutes(5);
// How far back the last value of a counter is searched for if it was silent for longer than the
// lookback.
constexpr milliseconds kMaxSilence = std::chrono::days(30);

bool is_gpu(std::string_view domain) {
  return domain.starts_with("gpu");
}

/// Returns the host and manager of a series. The scraped address may change while the counter
/// continues, so it is used only if there is no hostname.
std::string origin_of(const tsdb::Labels& labels) {
  const std::string_view host = labels.get("hostname");
  return fmt::format("{}\n{}\n{}", labels.get("manager"),
                     host.empty() ? labels.get("instance") : host, labels.get("cgrouphostname"));
}

/// Returns what distinguishes the series of one unit on one host: the domain of energy, or the GPU.
std::string part_of(const tsdb::Labels& labels) {
  const std::string_view gpu = labels.get("gpuuuid");
  return gpu.empty() ? std::string(labels.get("domain"))
                     : fmt::format("{}\t{}\t{}", gpu, labels.get("gpuiid"), labels.get("index"));
}

/// Returns all labels except the metric name, which PromQL functions drop.
std::string identity_of(const tsdb::Labels& labels) {
  auto entries = labels.entries();
  std::ranges::sort(entries);
  std::string text;
  for (const auto& [name, value] : entries) {
    if (name != "__name__") {
      text.append(name).append("\n").append(value).append("\n");
    }
  }
  return text;
}

std::string counter_key(std::string_view uuid, std::string_view origin, std::string_view domain) {
  return fmt::format("{}\n{}\n{}", uuid, origin, domain);
}

struct Series {
  std::string uuid;
  std::string origin;
  std::string domain;  ///< part_of()
  CounterSeries counter;
};

/// The series of one metric by uuid.
using History = std::map<std::string, std::vector<Series>, std::less<>>;

/// The result of a first query about a unit: which hosts and energy domains exist.
struct Presence {
  std::map<std::string, double> cpus;  ///< by origin
  std::map<std::string, std::set<std::string>> domains;
  std::size_t series = 0;
};

/// Reads the samples for one update. They span (start - lookback, end + settle].
class Reader {
 public:
  Reader(tsdb::Client& client,
         const tsdb::Settings& settings,
         const CounterRequest& request,
         const std::vector<model::Unit>& units,
         std::stop_token stop)
      : client_(client),
        settings_(settings),
        request_(request),
        window_(request.window),
        units_(units),
        stop_(std::move(stop)),
        reach_(std::max(kMinLookback, 3 * settings.scrape_interval)),
        first_ms_(window_.start_ms - reach_.count()),
        last_ms_(window_.end_ms + settle_time(settings).count()),
        uses_(units.size()) {
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (!units[i].uuid.empty()) {
        by_uuid_[units[i].uuid].push_back(i);
      }
    }
    for (auto& [uuid, indexes] : by_uuid_) {
      std::ranges::sort(indexes, {}, [&units](std::size_t i) { return units[i].started_at_ts; });
    }
  }

  Result<std::vector<UnitUse>> read() {
    if (auto done = find_presence(); !done) {
      return fail(std::move(done).error());
    }
    const std::int64_t samples_per_series =
        std::min<std::int64_t>(last_ms_ - first_ms_, kPart.count()) /
            std::max<std::int64_t>(settings_.scrape_interval.count(), 1) +
        1;
    std::vector<std::string> batch;
    std::int64_t samples = 0;
    for (const auto& [uuid, presence] : presence_) {
      const auto more = static_cast<std::int64_t>(presence.series) * samples_per_series;
      if (!batch.empty() && (samples + more > kSamplesPerQuery || batch.size() >= kUnitsPerQuery)) {
        if (auto done = read_batch(batch); !done) {
          return fail(std::move(done).error());
        }
        batch.clear();
        samples = 0;
      }
      batch.push_back(uuid);
      samples += more;
    }
    if (auto done = read_batch(batch); !done) {
      return fail(std::move(done).error());
    }
    return std::move(uses_);
  }

 private:
  static std::string selector(std::string_view metric,
                              const std::vector<std::string>& uuids,
                              std::string_view more = "") {
    return fmt::format("{}{{uuid=~\"{}\"{}}}", metric, tsdb::quote_text(tsdb::exact_regex(uuids)),
                       more);
  }

  [[nodiscard]] Result<> check_stop() const {
    if (stop_.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    return {};
  }

  [[nodiscard]] tsdb::Client::InstantQuery at(std::string query, std::int64_t time_ms) const {
    return {.query = std::move(query),
            .time_ms = time_ms,
            .lookback = milliseconds(0),
            .timeout = settings_.query_timeout,
            .complete = !request_.accept_incomplete};
  }

  /// Runs `function(selector[whole range])` at the end of the range.
  Result<tsdb::QueryAnswer> over_range(std::string_view function, const std::string& selection) {
    if (auto go = check_stop(); !go) {
      return fail(std::move(go).error());
    }
    return client_.query(at(fmt::format("{}({}[{}])", function, selection,
                                        tsdb::duration_text(milliseconds(last_ms_ - first_ms_))),
                            last_ms_));
  }

  Result<> find_presence() {
    std::vector<std::string> batch;
    const auto ask = [this, &batch]() -> Result<> {
      if (batch.empty()) {
        return {};
      }
      const std::string names = fmt::format("__name__=~\"{}|{}\"", kCpus, kEnergy);
      auto answer = over_range("max_over_time", selector("", batch, "," + names));
      if (!answer) {
        return fail(std::move(answer).error());
      }
      for (const auto& series : answer->series) {
        const std::string uuid(series.labels.get("uuid"));
        if (!by_uuid_.contains(uuid)) {
          continue;
        }
        auto& presence = presence_[uuid];
        const std::string_view domain = series.labels.get("domain");
        const std::string origin = origin_of(series.labels);
        ++presence.series;
        if (domain.empty()) {
          double& cpus = presence.cpus[origin];
          cpus = std::max(cpus, series.samples.front().value);
        } else {
          presence.domains[origin].emplace(domain);
        }
      }
      batch.clear();
      return {};
    };
    for (const auto& [uuid, indexes] : by_uuid_) {
      batch.push_back(uuid);
      if (batch.size() >= kUnitsPerQuery) {
        if (auto done = ask(); !done) {
          return done;
        }
      }
    }
    return ask();
  }

  /// Reads the raw samples of the whole range, in parts.
  Result<History> raw(const std::string& selection) {
    std::map<std::string, std::pair<tsdb::Labels, std::vector<tsdb::Sample>>> found;
    for (std::int64_t begin = first_ms_; begin < last_ms_; begin += kPart.count()) {
      if (auto go = check_stop(); !go) {
        return fail(std::move(go).error());
      }
      const std::int64_t end = std::min(begin + kPart.count(), last_ms_);
      auto answer = client_.query_samples(at(
          fmt::format("{}[{}]", selection, tsdb::duration_text(milliseconds(end - begin))), end));
      if (!answer) {
        return fail(std::move(answer).error());
      }
      for (auto& series : answer->series) {
        auto& entry = found[identity_of(series.labels)];
        for (const auto& sample : series.samples) {
          // Both ends of a range are included, so a sample on the boundary is returned twice.
          if (entry.second.empty() || sample.time_ms > entry.second.back().time_ms) {
            entry.second.push_back(sample);
          }
        }
        entry.first = std::move(series.labels);
      }
    }
    History history;
    for (auto& [identity, entry] : found) {
      const std::string uuid(entry.first.get("uuid"));
      if (by_uuid_.contains(uuid)) {
        history[uuid].push_back(
            {.uuid = uuid,
             .origin = origin_of(entry.first),
             .domain = part_of(entry.first),
             .counter = {.samples = std::move(entry.second), .before = std::nullopt}});
      }
    }
    return history;
  }

  /// Reads the raw samples of a counter. If they begin within the window although the unit is older
  /// than the range (the target was down for longer than the lookback), the value before them is
  /// queried. If there never was one, counting begins with the first sample.
  Result<History> raw_counter(const std::string& selection) {
    auto history = raw(selection);
    if (!history) {
      return history;
    }
    std::vector<Series*> unexplained;
    std::int64_t oldest = first_ms_;
    for (auto& [uuid, all] : *history) {
      const std::size_t index = by_uuid_.at(uuid).front();
      const std::int64_t started = units_[index].started_at_ts;
      for (auto& series : all) {
        if (series.counter.samples.front().time_ms > span_of(index).first && started < first_ms_) {
          unexplained.push_back(&series);
          oldest = std::min(oldest, started);
        }
      }
    }
    if (unexplained.empty()) {
      return history;
    }
    const milliseconds silence =
        std::min(milliseconds(first_ms_ - oldest) + std::chrono::minutes(1), kMaxSilence);
    if (auto go = check_stop(); !go) {
      return fail(std::move(go).error());
    }
    auto answer = client_.query(at(
        fmt::format("last_over_time({}[{}])", selection, tsdb::duration_text(silence)), first_ms_));
    if (!answer) {
      return fail(std::move(answer).error());
    }
    std::map<std::string, double> earlier;
    for (const auto& series : answer->series) {
      // If one origin has several addresses, the largest value of a counter is the latest.
      double& value = earlier[counter_key(series.labels.get("uuid"), origin_of(series.labels),
                                          part_of(series.labels))];
      value = std::max(value, series.samples.front().value);
    }
    for (Series* series : unexplained) {
      const auto found = earlier.find(counter_key(series->uuid, series->origin, series->domain));
      series->counter.before =
          found != earlier.end() ? found->second : series->counter.samples.front().value;
    }
    return history;
  }

  /// Returns the time span (from, to] of the samples that belong to a unit.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> span_of(std::size_t index) const {
    const model::Unit& unit = units_[index];
    const auto& same = by_uuid_.at(unit.uuid);
    const auto place = std::ranges::find(same, index);
    std::int64_t from = window_.start_ms;
    std::int64_t to = window_.end_ms;
    if (unit.ended_at_ts > 0 && unit.ended_at_ts <= window_.end_ms) {
      to = last_ms_;
    }
    // The unit ended before the window and was reported late: use all samples.
    if (unit.ended_at_ts > 0 && unit.ended_at_ts < window_.start_ms) {
      from = first_ms_;
    }
    if (place != same.begin()) {
      from = std::max(from, unit.started_at_ts);
    }
    if (std::next(place) != same.end()) {
      to = std::min(to, units_[*std::next(place)].started_at_ts);
    }
    return {from, to};
  }

  /// Returns what the hosts counted; nothing if there is no series of the wanted domains.
  template <typename Wanted>
  [[nodiscard]] std::optional<std::vector<Increment>> increments(const History& history,
                                                                 std::size_t index,
                                                                 Wanted&& wanted) const {
    const auto found = history.find(units_[index].uuid);
    if (found == history.end()) {
      return std::nullopt;
    }
    std::map<std::pair<std::string, std::string>, std::vector<CounterSeries>> origins;
    for (const auto& series : found->second) {
      if (wanted(series)) {
        origins[{series.origin, series.domain}].push_back(series.counter);
      }
    }
    if (origins.empty()) {
      return std::nullopt;
    }
    const auto [from, to] = span_of(index);
    std::vector<Increment> all;
    for (auto& [origin, counters] : origins) {
      const auto part = origin_increments(std::move(counters), from, to);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

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
    auto user = raw_counter(selector("ceems_compute_unit_cpu_user_seconds_total", uuids));
    if (!user) {
      return fail(std::move(user).error());
    }
    auto system = raw_counter(selector("ceems_compute_unit_cpu_system_seconds_total", uuids));
    if (!system) {
      return fail(std::move(system).error());
    }
    for (const auto& uuid : uuids) {
      for (const std::size_t index : by_uuid_.at(uuid)) {
        const auto any = [](const Series&) { return true; };
        const auto user_seconds = sum_of(increments(*user, index, any));
        const auto system_seconds = sum_of(increments(*system, index, any));
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
    if (auto done = read_memory(uuids); !done) {
      return done;
    }
    if (auto done = read_memory_peaks(uuids); !done) {
      return done;
    }
    if (auto done = read_gpus(uuids); !done) {
      return done;
    }
    return read_energy(uuids);
  }

  /// The gauge is a maximum since the unit's start. Units that share a uuid have the samples of
  /// their own time.
  Result<> read_memory_peaks(const std::vector<std::string>& uuids) {
    std::vector<std::string> shared;
    std::vector<std::string> alone;
    for (const auto& uuid : uuids) {
      (by_uuid_.at(uuid).size() > 1 ? shared : alone).push_back(uuid);
    }
    const auto take = [this](std::size_t index, double bytes) {
      auto& peak = uses_[index].peak_memory_bytes;
      if (bytes > 0) {
        peak = std::max(peak.value_or(0), bytes);
      }
    };
    if (!alone.empty()) {
      auto answer = over_range("max_over_time", selector(kMemoryPeak, alone));
      if (!answer) {
        return fail(std::move(answer).error());
      }
      for (const auto& series : answer->series) {
        if (const auto known = by_uuid_.find(series.labels.get("uuid")); known != by_uuid_.end()) {
          take(known->second.front(), series.samples.front().value);
        }
      }
    }
    if (!shared.empty()) {
      auto peaks = raw(selector(kMemoryPeak, shared));
      if (!peaks) {
        return fail(std::move(peaks).error());
      }
      for (const auto& [uuid, all] : *peaks) {
        for (const std::size_t index : by_uuid_.at(uuid)) {
          const auto [from, to] = span_of(index);
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
    auto busy = raw_counter(selector(kGpuBusy, uuids));
    if (!busy) {
      return fail(std::move(busy).error());
    }
    for (const auto& [uuid, all] : *busy) {
      for (const std::size_t index : by_uuid_.at(uuid)) {
        const auto [from, to] = span_of(index);
        std::set<std::pair<std::string_view, std::string_view>> gpus;
        for (const auto& series : all) {
          const auto& samples = series.counter.samples;
          if (samples.front().time_ms <= to && samples.back().time_ms > from) {
            gpus.emplace(series.origin, series.domain);
          }
        }
        if (!gpus.empty()) {
          uses_[index].gpus_seen = gpus.size();
          uses_[index].gpu_busy_seconds =
              sum_of(increments(*busy, index, [](const Series&) { return true; }));
        }
      }
    }
    return {};
  }

  Result<> read_memory(const std::vector<std::string>& uuids) {
    auto used = raw(selector("ceems_compute_unit_memory_used_bytes", uuids));
    if (!used) {
      return fail(std::move(used).error());
    }
    auto answer =
        over_range("max_over_time", selector("ceems_compute_unit_memory_total_bytes", uuids));
    if (!answer) {
      return fail(std::move(answer).error());
    }
    std::map<std::string, std::map<std::string, double>, std::less<>> totals;
    for (const auto& series : answer->series) {
      double& total = totals[std::string(series.labels.get("uuid"))][origin_of(series.labels)];
      total = std::max(total, series.samples.front().value);
    }
    for (const auto& [uuid, all] : *used) {
      std::map<std::string, std::vector<tsdb::Sample>> origins;
      for (const auto& series : all) {
        auto& samples = origins[series.origin];
        samples.insert(samples.end(), series.counter.samples.begin(), series.counter.samples.end());
      }
      for (auto& [origin, samples] : origins) {
        std::ranges::sort(samples, {}, &tsdb::Sample::time_ms);
      }
      for (const std::size_t index : by_uuid_.at(uuid)) {
        uses_[index].memory_ratio = memory_ratio(index, origins, totals[uuid]);
      }
    }
    return {};
  }

  [[nodiscard]] std::optional<double> memory_ratio(
      std::size_t index,
      const std::map<std::string, std::vector<tsdb::Sample>>& origins,
      const std::map<std::string, double>& totals) const {
    const auto [from, to] = span_of(index);
    const model::Unit& unit = units_[index];
    const Life life{.start_ms = unit.started_at_ts, .end_ms = unit.ended_at_ts};
    double byte_ms = 0;
    double total = 0;
    std::int64_t unseen = std::numeric_limits<std::int64_t>::max();
    for (const auto& [origin, samples] : origins) {
      const auto area = gauge_area(samples, life, from, to, reach_.count());
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
      auto energy = raw_counter(selector(kEnergy, with_node, ",domain=~\"node|gpu.*\""));
      if (!energy) {
        return fail(std::move(energy).error());
      }
      add_energy(with_node, *energy);
      auto idle = raw_counter(selector(kIdleEnergy, with_node, ",domain=\"node\""));
      if (!idle) {
        return fail(std::move(idle).error());
      }
      add_idle_energy(with_node, *idle);
    }
    if (!by_parts.empty()) {
      auto energy = raw_counter(selector(kEnergy, by_parts));
      if (!energy) {
        return fail(std::move(energy).error());
      }
      add_energy(by_parts, *energy);
      auto idle = raw_counter(selector(kIdleEnergy, by_parts));
      if (!idle) {
        return fail(std::move(idle).error());
      }
      add_idle_energy(by_parts, *idle);
    }
    return {};
  }

  /// The domain `node` holds the others, where it is known.
  void add_idle_energy(const std::vector<std::string>& uuids, const History& idle) {
    for (const auto& uuid : uuids) {
      const auto& domains = presence_.at(uuid).domains;
      for (const std::size_t index : by_uuid_.at(uuid)) {
        uses_[index].idle_energy_joules = sum_of(increments(idle, index, [&](const Series& s) {
          const auto found = domains.find(s.origin);
          const bool node = found != domains.end() && found->second.contains("node");
          return (s.domain == "node") == node;
        }));
      }
    }
  }

  void add_energy(const std::vector<std::string>& uuids, const History& energy) {
    for (const auto& uuid : uuids) {
      const auto& domains = presence_.at(uuid).domains;
      const auto node_known = [&domains](const Series& series) {
        const auto found = domains.find(series.origin);
        return found != domains.end() && found->second.contains("node");
      };
      for (const std::size_t index : by_uuid_.at(uuid)) {
        const auto gpu =
            increments(energy, index, [](const Series& s) { return is_gpu(s.domain); });
        const auto gpu_in_node = increments(
            energy, index, [&](const Series& s) { return is_gpu(s.domain) && node_known(s); });
        auto rest = increments(energy, index, [&](const Series& s) {
          return node_known(s) ? s.domain == "node" : !is_gpu(s.domain);
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

  tsdb::Client& client_;
  const tsdb::Settings& settings_;
  const CounterRequest& request_;
  const model::Window window_;
  const std::vector<model::Unit>& units_;
  const std::stop_token stop_;
  const milliseconds reach_;
  const std::int64_t first_ms_;
  const std::int64_t last_ms_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_uuid_;  ///< ordered by start
  std::map<std::string, Presence> presence_;
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
