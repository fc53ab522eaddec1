#include "ingest/updater/unit_samples.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::ingest {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kCpus = "ceems_compute_unit_cpus";
constexpr std::string_view kEnergySeries = "ceems_compute_unit_energy_joules_total";
constexpr milliseconds kPart = std::chrono::hours(1);
constexpr milliseconds kMinLookback = std::chrono::minutes(5);
// How far back the last value of a counter is searched for if it was silent for longer than the
// lookback.
constexpr milliseconds kMaxSilence = std::chrono::days(30);

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

}  // namespace

std::string origin_of(const tsdb::Labels& labels) {
  const std::string_view host = labels.get("hostname");
  return fmt::format("{}\n{}\n{}", labels.get("manager"),
                     host.empty() ? labels.get("instance") : host, labels.get("cgrouphostname"));
}

std::string series_of(std::string_view metric,
                      const std::vector<std::string>& uuids,
                      std::string_view more) {
  return fmt::format("{}{{uuid=~\"{}\"{}}}", metric, tsdb::quote_text(tsdb::exact_regex(uuids)),
                     more);
}

UnitSamples::UnitSamples(tsdb::Client& client,
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
      last_ms_(window_.end_ms + settle_time(settings).count()) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].uuid.empty()) {
      by_uuid_[units[i].uuid].push_back(i);
    }
  }
  for (auto& [uuid, indexes] : by_uuid_) {
    std::ranges::sort(indexes, {}, [&units](std::size_t i) { return units[i].started_at_ts; });
  }
}

Result<> UnitSamples::check_stop() const {
  if (stop_.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "stopped");
  }
  return {};
}

tsdb::Client::InstantQuery UnitSamples::at(std::string query, std::int64_t time_ms) const {
  return {.query = std::move(query),
          .time_ms = time_ms,
          .lookback = milliseconds(0),
          .timeout = settings_.query_timeout,
          .complete = !request_.accept_incomplete};
}

Result<tsdb::QueryAnswer> UnitSamples::over_range(std::string_view function,
                                                  const std::string& selection) {
  CEEMS_TRY(check_stop());
  return client_.query(at(fmt::format("{}({}[{}])", function, selection,
                                      tsdb::duration_text(milliseconds(last_ms_ - first_ms_))),
                          last_ms_));
}

Result<std::map<std::string, UnitPresence>> UnitSamples::find_presence() {
  std::map<std::string, UnitPresence> all;
  std::vector<std::string> batch;
  const auto ask = [this, &batch, &all]() -> Result<> {
    if (batch.empty()) {
      return {};
    }
    const std::string names = fmt::format("__name__=~\"{}|{}\"", kCpus, kEnergySeries);
    CEEMS_TRY(answer, over_range("max_over_time", series_of("", batch, "," + names)));
    for (const auto& series : answer.series) {
      const std::string uuid(series.labels.get("uuid"));
      if (!by_uuid_.contains(uuid)) {
        continue;
      }
      auto& presence = all[uuid];
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
      CEEMS_TRY(ask());
    }
  }
  CEEMS_TRY(ask());
  return all;
}

Result<UnitHistory> UnitSamples::raw(const std::string& selection) {
  std::map<std::string, std::pair<tsdb::Labels, std::vector<tsdb::Sample>>> found;
  for (std::int64_t begin = first_ms_; begin < last_ms_; begin += kPart.count()) {
    CEEMS_TRY(check_stop());
    const std::int64_t end = std::min(begin + kPart.count(), last_ms_);
    CEEMS_TRY(answer,
              client_.query_samples(at(
                  fmt::format("{}[{}]", selection, tsdb::duration_text(milliseconds(end - begin))),
                  end)));
    for (auto& series : answer.series) {
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
  UnitHistory history;
  for (auto& [identity, entry] : found) {
    const std::string uuid(entry.first.get("uuid"));
    if (by_uuid_.contains(uuid)) {
      history[uuid].push_back(
          {.uuid = uuid,
           .origin = origin_of(entry.first),
           .part = part_of(entry.first),
           .counter = {.samples = std::move(entry.second), .before = std::nullopt}});
    }
  }
  return history;
}

Result<UnitHistory> UnitSamples::raw_counter(const std::string& selection) {
  CEEMS_TRY(history, raw(selection));
  std::vector<UnitSeries*> unexplained;
  std::int64_t oldest = first_ms_;
  for (auto& [uuid, all] : history) {
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
  CEEMS_TRY(check_stop());
  CEEMS_TRY(answer, client_.query(at(fmt::format("last_over_time({}[{}])", selection,
                                                 tsdb::duration_text(silence)),
                                     first_ms_)));
  std::map<std::string, double> earlier;
  for (const auto& series : answer.series) {
    // If one origin has several addresses, the largest value of a counter is the latest.
    double& value = earlier[counter_key(series.labels.get("uuid"), origin_of(series.labels),
                                        part_of(series.labels))];
    value = std::max(value, series.samples.front().value);
  }
  for (UnitSeries* series : unexplained) {
    const auto found = earlier.find(counter_key(series->uuid, series->origin, series->part));
    series->counter.before =
        found != earlier.end() ? found->second : series->counter.samples.front().value;
  }
  return history;
}

std::pair<std::int64_t, std::int64_t> UnitSamples::span_of(std::size_t index) const {
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

std::int64_t UnitSamples::samples_per_series() const {
  return std::min<std::int64_t>(last_ms_ - first_ms_, kPart.count()) /
             std::max<std::int64_t>(settings_.scrape_interval.count(), 1) +
         1;
}

}  // namespace ceems::ingest
