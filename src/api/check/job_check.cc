#include "api/check/job_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "advice/catalogue.h"
#include "api/answer/numbers.h"
#include "api/check/elsewhere.h"
#include "api/check/expected.h"
#include "api/check/past_runs.h"
#include "api/check/suggestions.h"
#include "base/json.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "report/family.h"

namespace ceems::api {
namespace {

using report::Number;
using report::Range;

constexpr int kDigits = 3;
/// Numbers of several people, from which no single run should be recognized.
constexpr int kStatisticDigits = 2;
constexpr std::size_t kLeastHeld = 50;  // runs without which a share says little
constexpr double kShareDigits = 100;

/// When a start in another hour would be greener, and by how much.
struct GreenStart {
  std::int64_t start_ms = 0;
  double grams = 0, low = 0, high = 0, now_grams = 0;
};

/// The best start of the next day, if it is worth waiting for.
std::optional<GreenStart> green_start(const GridOutlook& grid,
                                      const Expected& expected,
                                      const JobRequest& request,
                                      std::int64_t now_ms) {
  constexpr double kMaxElapsed = 12 * kHourSeconds;  // longer runs average out
  constexpr double kLeastShare = 0.1, kLeastGrams = 100;
  constexpr std::size_t kDayHours = 24;
  if (!expected.kwh || !expected.elapsed || expected.elapsed->mid >= kMaxElapsed || !grid.varies) {
    return std::nullopt;
  }
  const double elapsed = expected.elapsed->mid;
  const auto length = static_cast<std::size_t>(std::max(std::ceil(elapsed / kHourSeconds), 1.0));
  std::vector<ForecastHour> hours;
  std::size_t starts = 0;
  for (const ForecastHour& hour : grid.hours) {
    if (hour.from_ms < now_ms) {
      continue;  // it was read a while ago
    }
    hours.push_back(hour);
    const double end_ms =
        static_cast<double>(hour.from_ms) + elapsed * static_cast<double>(kSecondMs);
    const bool in_time =
        !request.deadline_ms || end_ms <= static_cast<double>(*request.deadline_ms);
    starts += in_time && starts < kDayHours ? 1 : 0;
  }
  const auto best = greenest(hours, length, starts);
  if (!best || !best->next) {
    return std::nullopt;
  }
  const double kwh = expected.kwh->mid;
  const double saves = (*best->next - best->mean) * kwh;
  if (saves < kLeastGrams || saves < kLeastShare * *best->next * kwh) {
    return std::nullopt;
  }
  return GreenStart{.start_ms = best->from_ms,
                    .grams = best->mean * kwh,
                    .low = best->low * kwh,
                    .high = best->high * kwh,
                    .now_grams = *best->next * kwh};
}

/// The option of the manager that begins a job then, if it has one. It is less than a day away.
std::optional<std::string> begin_line(std::string_view manager,
                                      const TimeZone& zone,
                                      std::int64_t start_ms) {
  const std::string local = zone.local(start_ms);  // 2031-04-05T22:00:00
  const std::string hour = local.substr(11, 2);
  const std::string minute = local.substr(14, 2);
  if (manager == "slurm") {
    return fmt::format("--begin={}:{}", hour, minute);
  }
  if (manager == "lsf") {
    return fmt::format("-b {}:{}", hour, minute);
  }
  return manager == "openpbs" ? std::optional(fmt::format("-a {}{}", hour, minute)) : std::nullopt;
}

/// Writes the answer. What is not known is left out.
class Answer {
 public:
  Answer(std::string& out, bool statistic)
      : json_(out), digits_(statistic ? kStatisticDigits : kDigits) {}

  JsonWriter& json() { return json_; }

  void number(std::string_view name, const Number& value) {
    if (value) {
      json_.member(name, rounded(*value, digits_));
    }
  }

  void range(std::string_view name,
             const std::optional<Range>& range,
             const std::string& currency = {}) {
    if (!range) {
      return;
    }
    json_.key(name).begin_object();
    number("mid", range->mid);
    number("low", range->low);
    number("high", range->high);
    if (!currency.empty()) {
      json_.member("currency", currency);
    }
    json_.end_object();
  }

  void texts(std::string_view name, const std::vector<std::string>& all) {
    json_.key(name).begin_array();
    for (const std::string& one : all) {
      json_.value(one);
    }
    json_.end_array();
  }

  void unused(const Unused& unused) {
    if (!unused.any()) {
      return;
    }
    json_.key("unused").begin_object();
    number("gpus", unused.gpus);
    number("cpus", unused.cpus);
    number("memory_bytes", unused.memory);
    number("time_limit_s", unused.time_limit);
    json_.end_object();
  }

  void suggestions(const std::vector<Suggestion>& all) {
    json_.key("suggestions").begin_array();
    for (const Suggestion& one : all) {
      json_.begin_object().member("rule", one.rule).member("text", one.text);
      texts("lines", one.lines);
      texts("was", one.was);
      json_.key("saves").begin_object();
      number("kwh", one.saves_kwh);
      json_.end_object().member("seen_in", static_cast<std::int64_t>(one.seen_in)).end_object();
    }
    json_.end_array();
  }

  void elsewhere(const std::vector<Elsewhere>& all, const std::string& currency) {
    json_.key("elsewhere").begin_array();
    for (const Elsewhere& one : all) {
      json_.begin_object();
      for (const auto& [name, text] : {std::pair("site", &one.resource->site),
                                       {"partition", &one.resource->partition},
                                       {"url", &one.resource->url},
                                       {"text", &one.text},
                                       {"for", &one.resource->audience},
                                       {"note", &one.resource->note}}) {
        if (!text->empty()) {
          json_.member(name, *text);
        }
      }
      number("cost", one.cost);
      if (one.cost && !currency.empty()) {
        json_.member("currency", currency);
      }
      json_.end_object();
    }
    json_.end_array();
  }

  void begin(const GreenStart& start, const std::optional<std::string>& line) {
    json_.key("begin").begin_object().member("start_ts", start.start_ms);
    json_.member("g", std::round(start.grams)).member("now_g", std::round(start.now_grams));
    json_.key("band_g").begin_array();
    json_.value(std::round(start.low)).value(std::round(start.high)).end_array();
    texts("lines", line ? std::vector{*line} : std::vector<std::string>());
    json_.member("basis", "median").end_object();
  }

 private:
  JsonWriter json_;
  int digits_;
};

}  // namespace

Result<std::string> JobCheck::manager_of(const JobRequest& request) const {
  const auto& clusters = from_.site->clusters;
  const auto cluster = std::ranges::find(clusters, request.cluster_id, &SiteCluster::id);
  if (cluster == clusters.end() && !clusters.empty()) {
    return fail(ErrorCode::kInvalidArgument, "cluster_id: no cluster '{}'",
                printable(request.cluster_id, 60));
  }
  const auto manager = manager_of_form(request.form);
  return manager                     ? std::string(*manager)
         : cluster == clusters.end() ? std::string("slurm")
                                     : cluster->manager;
}

Result<std::string> JobCheck::check(const access::Identity& identity,
                                    const JobRequest& request,
                                    std::string_view language) {
  CEEMS_TRY(manager, manager_of(request));
  const std::int64_t now_ms = from_.clock->now_ms();
  CEEMS_TRY(past, find_past_runs(*from_.reader, identity, request, now_ms));
  const auto rules = from_.rules->get();
  CEEMS_TRY(suggestions,
            suggest(*from_.reader, identity, *rules, request, manager, language, past.family));
  refresh();
  const auto known = background();
  std::optional<Costs> costs;
  if (from_.accounting->priced() && !from_.accounting->options().prices.in_tsdb()) {
    costs.emplace(from_.accounting->costs());
  }
  const Expected expected = expect_request(past, request, costs ? &*costs : nullptr, now_ms);
  const Unused unused = unused_by(past.family);
  const std::string& currency = from_.accounting->currency();

  std::string data;
  Answer answer(data, past.basis == Basis::kProject || past.basis == Basis::kPartition);
  JsonWriter& json = answer.json();
  json.begin_object().member("cluster_id", request.cluster_id).key("basis").begin_object();
  json.member("kind", to_string(past.basis)).member("name", past.name);
  json.member("runs", static_cast<std::int64_t>(std::min(past.runs.size(), report::kMaxFamily)));
  json.member("days", report::kFamilyMs / kDayMs).end_object();
  json.key("expected").begin_object();
  answer.range("wait_s", expected.wait);
  answer.range("elapsed_s", expected.elapsed);
  answer.range("energy_kwh", expected.kwh);
  answer.range("cost", expected.cost, currency);
  answer.range("emissions_g", expected.grams);
  json.end_object().member("array_tasks", request.array_tasks);
  if (expected.over_limit > 0) {
    json.member("over_limit", static_cast<std::int64_t>(expected.over_limit));
  }
  const auto held = known->held.find(request.cluster_id);
  if (held != known->held.end() && held->second.of >= kLeastHeld) {
    const double share =
        static_cast<double>(held->second.held) / static_cast<double>(held->second.of);
    json.key("held").begin_object();
    json.member("share", std::round(share * kShareDigits) / kShareDigits);
    json.member("of", static_cast<std::int64_t>(held->second.of)).end_object();
  }
  answer.unused(unused);
  answer.suggestions(suggestions);
  answer.elsewhere(find_elsewhere(from_.accounting->options().resources, request, expected, unused,
                                  currency, language),
                   currency);
  if (const auto start = green_start(known->grid, expected, request, now_ms)) {
    answer.begin(*start, begin_line(manager, from_.zone, start->start_ms));
  }
  json.end_object();
  return data;
}

JobCheck::Background JobCheck::read_background(std::int64_t now_ms) const {
  Background read;
  if (from_.fleet != nullptr) {
    auto grid = read_outlook(*from_.fleet, now_ms);
    if (grid) {
      read.grid = std::move(*grid);
    } else {
      log::warn("cannot read the emissions of the grid", {{"err", grid.error().message}});
    }
  }
  for (const SiteCluster& cluster : from_.site->clusters) {
    const auto held = held_on(*from_.reader, cluster.id, now_ms);
    if (held) {
      read.held[cluster.id] = *held;
    } else {
      log::warn("cannot read how often expectations held",
                {{"cluster_id", cluster.id}, {"err", held.error().message}});
    }
  }
  return read;
}

std::shared_ptr<const JobCheck::Background> JobCheck::background() {
  const MutexLock lock(mutex_);
  return background_;
}

void JobCheck::keep_fresh() {
  {
    const MutexLock lock(mutex_);
    if (!next_) {
      return;
    }
  }
  refresh();
}

void JobCheck::refresh() {
  constexpr auto kEvery = std::chrono::minutes(30);
  const std::int64_t now_ms = from_.clock->now_ms();
  const auto now = from_.clock->steady_now();
  const MutexLock lock(mutex_);
  if (reading_ || (next_ && now < *next_)) {
    return;
  }
  next_ = now + kEvery;
  reading_ = true;
  reader_ = std::jthread([this, now_ms] {  // the one before has ended
    auto read = std::make_shared<const Background>(read_background(now_ms));
    const MutexLock ended(mutex_);
    background_ = std::move(read);
    reading_ = false;
  });
}

}  // namespace ceems::api
