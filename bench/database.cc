// Fills a database with the units of one year and measures the queries of the API. Usage: database
// sqlite:DIRECTORY|postgresql://... UNITS [USERS [NAME]]. Prints lines "name value unit"; with NAME
// only of measurements whose name contains it. The first run fills the database. Later runs only
// query it, so they show the memory of queries.

#include "store/database.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/time/time_zone.h"
#include "store/factory/open_database.h"
#include "store/facts.h"

namespace {

namespace store = ceems::store;
namespace model = ceems::model;

constexpr std::int64_t kFirst = 1'735'689'600'000;  // 2025-01-01T00:00:00Z
constexpr std::int64_t kYear = 365LL * 24 * 3600 * 1000;
constexpr std::int64_t kHour = 3'600'000;
constexpr std::size_t kPerWindow = 10'000;
constexpr std::size_t kProjects = 100;
constexpr std::size_t kLedProjects = 10;  // of each lead

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// User and system time of this process.
double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// The peak resident size of this process, in MiB.
double peak_rss() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::strtod(line.c_str() + 6, nullptr) / 1024;
    }
  }
  return 0;
}

template <typename T>
T must(ceems::Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(1);  // NOLINT(concurrency-mt-unsafe): nothing else runs
  }
  return std::move(*result);
}

/// A job that ended in the window, with the metrics of a site with CPUs and GPUs.
model::Unit job(std::size_t number, std::size_t users, std::int64_t start_ms, std::int64_t end_ms) {
  const ceems::TimeZone utc;
  model::Unit unit;
  unit.resource_manager = "slurm";
  unit.uuid = std::to_string(number);
  unit.name = fmt::format("job-{}", number % 97);
  const std::size_t user = number * 2654435761U % users;
  unit.username = fmt::format("user{}", user);
  unit.project = fmt::format("project{}", user % kProjects);
  unit.groupname = fmt::format("group{}", user % 20);
  unit.created_at_ts = start_ms - 1000;
  unit.started_at_ts = start_ms;
  unit.ended_at_ts = end_ms;
  unit.created_at = utc.local_with_offset(start_ms - 1000);
  unit.started_at = utc.local_with_offset(start_ms);
  unit.ended_at = utc.local_with_offset(end_ms);
  unit.elapsed = "00:30:00";
  unit.state = "COMPLETED";
  unit.allocation = R"({"cpus":8,"mem":34359738368,"gpus":1,"nodes":1,"nodelist":"node17"})";
  const double wall = static_cast<double>(end_ms - start_ms) / 1000;
  unit.total_time_seconds = {{"walltime", wall},
                             {"alloc_cputime", 8 * wall},
                             {"alloc_cpumemtime", 32768 * wall},
                             {"alloc_gputime", wall},
                             {"alloc_gpumemtime", wall}};
  const double share = static_cast<double>(number % 1000) / 10;
  for (std::size_t m = 0; m < model::kMetricCount; ++m) {
    unit.metrics[m] = {{"global", share + static_cast<double>(m) + 0.123456789}};
    unit.has_metric[m] = true;
  }
  unit.metric(model::Metric::kTotalCpuEnergyUsageKwh) = {{"total", share / 7}, {"idle", share / 9}};
  return unit;
}

void fill(store::Writer& writer, std::size_t count, std::size_t users) {
  const std::size_t windows = (count + kPerWindow - 1) / kPerWindow;
  const auto step = kYear / static_cast<std::int64_t>(windows);
  double writing = 0;
  double cpu = 0;
  for (std::size_t window = 0; window < windows; ++window) {
    const std::int64_t start = kFirst + static_cast<std::int64_t>(window) * step;
    store::ClusterUpdate update{.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
                                .window = {.start_ms = start, .end_ms = start + step},
                                .units = {},
                                .users = {},
                                .projects = {}};
    for (std::size_t i = window * kPerWindow; i < std::min(count, (window + 1) * kPerWindow); ++i) {
      const auto offset =
          static_cast<std::int64_t>(i % kPerWindow) * step / static_cast<std::int64_t>(kPerWindow);
      update.units.push_back(job(i, users, start + offset - kHour / 2, start + offset + 1));
    }
    if (window == 0) {
      update.projects.emplace();
      update.leads.emplace();
      for (std::size_t project = 0; project < kProjects; ++project) {
        model::Project& added = update.projects->emplace_back();
        added.name = fmt::format("project{}", project);
        for (std::size_t user = project; user < users; user += kProjects) {
          added.users.push_back(fmt::format("user{}", user));
        }
        (*update.leads)[added.name] = {fmt::format("lead{}", project / kLedProjects)};
      }
    }
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_seconds();
    must(writer.write(update));
    writing += seconds_since(begin);
    cpu += cpu_seconds() - cpu_begin;
    if (constexpr std::size_t kNews = 100; window % kNews == kNews - 1) {
      fmt::print(stderr, "{} units, {:.0f} a second, {:.1f} us of CPU each\n",
                 (window + 1) * kPerWindow,
                 static_cast<double>((window + 1) * kPerWindow) / writing,
                 cpu * 1e6 / static_cast<double>((window + 1) * kPerWindow));
    }
  }
  fmt::print("ingest {:.0f} units/s\ningest_cpu {:.1f} us/unit\n",
             static_cast<double>(count) / writing, cpu * 1e6 / static_cast<double>(count));
}

/// Runs rounds without units, which finish the sums over time.
void finish(store::Writer& writer) {
  constexpr int kRounds = 200;
  const std::int64_t end = must(writer.watermark("hpc")).value_or(0);
  for (int round = 0; round < kRounds; ++round) {
    must(writer.write({.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}},
                       .window = {.start_ms = end + round, .end_ms = end + round + 1},
                       .units = {},
                       .users = {},
                       .projects = {}}));
  }
}

std::size_t count_rows(store::Cursor& cursor) {
  std::size_t rows = 0;
  while (must(cursor.next())) {
    ++rows;
  }
  return rows;
}

std::string only;  // NOLINT: set once, before anything is measured

/// Runs the query `times` times and prints how long it took, and how much CPU time of this process.
template <typename Ask>
void measure(std::string_view name, int times, Ask ask) {
  if (name.find(only) == std::string_view::npos) {
    return;
  }
  std::vector<double> seconds;
  const double cpu = cpu_seconds();
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    ask();
    seconds.push_back(seconds_since(begin));
  }
  std::ranges::sort(seconds);
  fmt::print("{}_p50 {:.1f} ms\n{}_p99 {:.1f} ms\n{}_cpu {:.1f} ms\n", name,
             seconds[seconds.size() / 2] * 1000, name, seconds[seconds.size() * 99 / 100] * 1000,
             name, (cpu_seconds() - cpu) * 1000 / times);
}

std::vector<std::size_t> all_fields() {
  std::vector<std::size_t> fields(store::unit_fields().size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    fields[i] = i;
  }
  return fields;
}

/// The first page of a period that ends on a random day, newest first. The days differ, because the
/// same page would come from a cache.
template <typename Owners>
void newest(store::Reader& reader, std::string_view name, Owners owners) {
  std::mt19937 random(2);
  const auto fields = all_fields();
  measure(name, 300, [&] {
    store::UnitQuery query;
    query.owners = owners();
    const std::int64_t day = 36 + static_cast<std::int64_t>(random() % 330);
    query.ended = store::TimeRange{kFirst, kFirst + day * 24 * kHour};
    query.running = true;
    query.order = store::UnitOrder::kByEnd;
    query.descending = true;
    query.limit = 100;
    count_rows(*must(reader.units(query, fields)));
  });
}

void lists(store::Reader& reader, std::size_t users) {
  std::mt19937 random(1);
  const auto fields = all_fields();
  measure("user_week", 300, [&] {
    const std::int64_t to = kFirst + static_cast<std::int64_t>(random() % 365) * 24 * kHour;
    store::UnitQuery query;
    query.owners.names = {fmt::format("user{}", random() % users)};
    query.ended = store::TimeRange{to - 7 * 24 * kHour, to};
    query.running = true;
    count_rows(*must(reader.units(query, fields)));
  });
  measure("user_year_first_100", 100, [&] {
    store::UnitQuery query;
    query.owners.names = {fmt::format("user{}", random() % users)};
    query.ended = store::TimeRange{kFirst, kFirst + kYear};
    query.limit = 100;
    count_rows(*must(reader.units(query, fields)));
  });
  newest(reader, "user_year_newest_100",
         [&] { return store::Scope{.names = {fmt::format("user{}", random() % users)}}; });
  newest(reader, "lead_year_newest_100", [&] {
    const std::string lead = fmt::format("lead{}", random() % (kProjects / kLedProjects));
    return store::Scope{.names = {lead}, .led_projects = must(reader.led_projects(lead))};
  });
  newest(reader, "admin_year_newest_100", [] { return store::Scope{.everybody = true}; });
}

/// Lists from the facts of units, which answer units/list and units/summary.
void fact_lists(store::Reader& reader, std::size_t users) {
  using store::Fact;
  std::mt19937 random(3);
  const auto list = [&](store::FactListQuery& query) {
    query.filter.names.everybody = true;
    for (std::size_t i = 0; i <= static_cast<std::size_t>(Fact::kAdvice); ++i) {
      query.columns.push_back(static_cast<Fact>(i));
    }
    count_rows(*must(reader.unit_facts(query)));
  };
  measure("facts_user_year_newest_100", 300, [&] {
    store::FactListQuery query;
    query.filter.owners.names = {fmt::format("user{}", random() % users)};
    const std::int64_t day = 36 + static_cast<std::int64_t>(random() % 330);
    query.filter.ended = store::TimeRange{kFirst, kFirst + day * 24 * kHour};
    query.filter.running = true;
    query.limit = 100;
    list(query);
  });
  measure("facts_user_year_top_50_by_energy", 100, [&] {
    store::FactListQuery query;
    query.filter.owners.names = {fmt::format("user{}", random() % users)};
    query.filter.ended = store::TimeRange{kFirst, kFirst + kYear};
    query.sort = Fact::kKwh;
    query.limit = 50;
    list(query);
  });
  // A tenth of the units of all users: a month of a large site.
  measure("facts_admin_month_top_50_by_energy", 10, [&] {
    store::FactListQuery query;
    query.filter.owners.everybody = true;
    const std::int64_t to = kFirst + static_cast<std::int64_t>(40 + random() % 320) * 24 * kHour;
    query.filter.ended = store::TimeRange{to - 36 * 24 * kHour, to};
    query.sort = Fact::kKwh;
    query.limit = 50;
    list(query);
  });
  measure("facts_user_year_summary", 20, [&] {
    store::SummaryQuery query;
    query.filter.owners.names = {fmt::format("user{}", random() % users)};
    query.filter.ended = store::TimeRange{kFirst, kFirst + kYear};
    query.facets = {Fact::kState, Fact::kProject};
    query.heat = {Fact::kCpu, Fact::kMem};
    must(reader.unit_summary(query));
  });
}

void usage(store::Reader& reader) {
  for (const bool daily : {false, true}) {
    store::CurrentUsageQuery query;
    query.updated = {kFirst, kFirst + kYear};
    query.daily = daily;
    query.rows.members.everybody = true;
    query.maps.fill(true);
    measure(daily ? "admin_year_days" : "admin_year", 5,
            [&] { must(reader.current_usage(query)); });
  }
}

void stats(store::Reader& reader) {
  measure("stats", 5, [&] { count_rows(*must(reader.stats({}, std::nullopt))); });
}

void stream(store::Reader& reader) {
  store::UnitQuery query;
  query.owners.everybody = true;
  query.limit = 1'000'000;
  const double before = peak_rss();
  const auto begin = std::chrono::steady_clock::now();
  const std::size_t rows = count_rows(*must(reader.units(query, all_fields())));
  fmt::print(
      "stream {} rows\nstream_time {:.2f} s\npeak_rss {:.0f} MiB\npeak_rss_before {:.0f} MiB\n",
      rows, seconds_since(begin), peak_rss(), before);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (arguments.size() < 3) {
    fmt::print(stderr, "usage: database sqlite:DIRECTORY|postgresql://... UNITS [USERS [NAME]]\n");
    return 2;
  }
  store::DatabaseOptions options{.time_zone = "UTC"};
  const bool sqlite = arguments[1].starts_with("sqlite:");
  (sqlite ? options.directory : options.url) = sqlite ? arguments[1].substr(7) : arguments[1];
  const std::size_t count = std::stoull(arguments[2]);
  const std::size_t users = arguments.size() > 3 ? std::stoull(arguments[3]) : 1000;
  only = arguments.size() > 4 ? arguments[4] : "";
  auto database = must(store::open_database(options, ceems::real_clock()));
  if (!must(database->writer().watermark("hpc"))) {
    fill(database->writer(), count, users);
    finish(database->writer());
    return 0;
  }
  lists(database->reader(), users);
  fact_lists(database->reader(), users);
  usage(database->reader());
  stats(database->reader());
  if (only.empty()) {
    stream(database->reader());
  }
  return 0;
}
