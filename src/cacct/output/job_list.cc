#include "cacct/output/job_list.h"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/time_text.h"
#include "base/utf8.h"
#include "cacct/output/columns.h"
#include "cacct/output/json_values.h"
#include "cacct/output/quantity.h"

namespace ceems::cacct {
namespace {

namespace sj = simdjson::dom;

constexpr double kMaxSeconds = 1e15;

/// The number of this name, or the only one.
std::optional<double> only(const Record& record, std::string_view tag, std::string_view key) {
  const auto* numbers = record.numbers(tag);
  if (numbers == nullptr) {
    return std::nullopt;
  }
  const auto found = std::ranges::find(*numbers, key, [](const auto& one) { return one.first; });
  if (found != numbers->end()) {
    return found->second;
  }
  return numbers->size() == 1 ? std::optional(numbers->front().second) : std::nullopt;
}

std::optional<double> added(std::optional<double> one, std::optional<double> other) {
  return one && other ? std::optional(*one + *other) : one ? one : other;
}

void read_use(const Record& record, JobLine& line) {
  line.user = record.text("username");
  line.account = record.text("project");
  line.cpu = only(record, "avg_cpu_usage", "global");
  line.mem = only(record, "avg_cpu_mem_usage", "global");
  line.gpu = only(record, "avg_gpu_usage", "global");
  line.kwh = added(only(record, "total_cpu_energy_usage_kwh", "total"),
                   only(record, "total_gpu_energy_usage_kwh", "total"));
}

/// "CANCELLED by 1000" is CANCELLED.
std::string first_word(std::string_view text) {
  return std::string(take_word(text));
}

/// A row of units/list by the names of its columns.
class ListRow {
 public:
  ListRow(const std::vector<std::string_view>& names, const sj::array& cells) {
    std::size_t i = 0;
    for (const sj::element cell : cells) {
      if (i < names.size()) {
        cells_[names[i++]] = cell;
      }
    }
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    std::string_view value;
    const auto found = cells_.find(name);
    return found != cells_.end() && found->second.get(value) == simdjson::SUCCESS
               ? terminal_safe(value)
               : std::string();
  }
  [[nodiscard]] std::optional<double> number(std::string_view name) const {
    double value = 0;
    const auto found = cells_.find(name);
    return found != cells_.end() && found->second.get(value) == simdjson::SUCCESS &&
                   std::isfinite(value)
               ? std::optional(value)
               : std::nullopt;
  }
  /// A moment; 0 if there is none or it is beyond the year 9999.
  [[nodiscard]] std::int64_t moment(std::string_view name) const {
    constexpr double kMaxMs = 253'402'300'799'999;
    const double value = number(name).value_or(0);
    return value > 0 && value <= kMaxMs ? static_cast<std::int64_t>(value) : 0;
  }

 private:
  std::map<std::string_view, sj::element> cells_;
};

std::vector<std::string> row_of(const JobLine& line,
                                bool sum,
                                const JobListLook& look,
                                bool brief) {
  const auto share = [](std::optional<double> value) {
    return value ? percent_text(*value) : std::string();
  };
  return {line.id,
          sum ? line.account : line.name,
          line.user,
          line.state,
          sum || line.started_ms <= 0 ? "" : start_text(line.started_ms, look.now, brief),
          line.elapsed,
          share(line.cpu),
          share(line.mem),
          share(line.gpu),
          line.kwh ? energy_text(*line.kwh) : "",
          line.cost ? cost_text(*line.cost) : ""};
}

std::vector<ListColumn> job_columns(const JobListLook& look, bool users) {
  constexpr std::size_t kLeastName = 8;
  return {{.title = "JOB"},
          {.title = "NAME", .least = kLeastName},
          {.title = users ? "USER" : "", .least = users ? kLeastName : 0, .leave_out = 8},
          {.title = "STATE"},
          {.title = "START", .leave_out = 1},
          {.title = "ELAPSED", .right = true, .leave_out = 3},
          {.title = "CPU", .right = true, .leave_out = 5},
          {.title = "MEM", .right = true, .leave_out = 2},
          {.title = "GPU", .right = true, .leave_out = 6},
          {.title = "ENERGY", .right = true, .leave_out = 7},
          {.title = look.currency.empty() ? "COST" : look.currency, .right = true, .leave_out = 4}};
}

/// The cost of a sum, if that of each of its jobs is known.
std::optional<double> cost_of(const std::vector<JobLine>& jobs, const JobLine* sum) {
  std::optional<double> cost = 0;
  for (const JobLine& job : jobs) {
    if (sum == nullptr || (job.user == sum->user && job.account == sum->account)) {
      cost = cost && job.cost ? std::optional(*cost + *job.cost) : std::nullopt;
    }
  }
  return cost;
}

/// All sums together: of averages there is none.
JobLine grand_total(const std::vector<JobLine>& jobs, const std::vector<JobLine>& sums) {
  JobLine total{.id = fmt::format("{} jobs", jobs.size()), .account = "total"};
  for (const JobLine& line : sums) {
    total.kwh = added(total.kwh, line.kwh);
  }
  total.cost = cost_of(jobs, nullptr);
  return total;
}

}  // namespace

JobLine job_line(const Record& unit) {
  JobLine line{.uuid = std::string(unit.text("uuid")),
               .name = std::string(unit.text("name")),
               .state = first_word(unit.text("state")),
               .elapsed = std::string(unit.text("elapsed")),
               .started_ms = unit.whole("started_at_ts"),
               .ended_ms = unit.whole("ended_at_ts"),
               .gpus = only(unit, "allocation", "gpus").value_or(0)};
  read_use(unit, line);
  const auto id = unit.text("slurm_id");
  line.id = id.empty() ? line.uuid : std::string(id);
  return line;
}

JobLine sum_line(const Record& usage) {
  JobLine line;
  read_use(usage, line);
  const std::string_view count = usage.text("num_units");
  line.id = fmt::format("{} job{}", count, count == "1" ? "" : "s");
  const double seconds = only(usage, "total_time_seconds", "walltime").value_or(0);
  if (seconds > 0) {
    line.elapsed = elapsed_text(static_cast<std::int64_t>(std::min(seconds, kMaxSeconds)));
  }
  return line;
}

Result<std::vector<JobLine>> parse_job_lines(const std::string& body) {
  sj::parser parser;
  CEEMS_TRY(data, data_in<sj::object>(parser, body));
  sj::array columns;
  sj::array rows;
  if (data["columns"].get(columns) != simdjson::SUCCESS ||
      data["rows"].get(rows) != simdjson::SUCCESS) {
    return unexpected_answer();
  }
  std::vector<std::string_view> names;
  for (const sj::element column : columns) {
    std::string_view name;
    if (column.get(name) == simdjson::SUCCESS) {
      names.push_back(name);
    } else {
      names.emplace_back();
    }
  }
  std::vector<JobLine> lines;
  for (const sj::element each : rows) {
    sj::array cells;
    if (each.get(cells) != simdjson::SUCCESS) {
      return unexpected_answer();
    }
    const ListRow row(names, cells);
    JobLine& line = lines.emplace_back();
    line.uuid = row.text("uuid");
    line.id = row.text("array");
    line.id = line.id.empty() ? line.uuid : line.id;
    line.name = row.text("name");
    line.user = row.text("user");
    line.account = row.text("project");
    line.state = first_word(row.text("state"));
    line.started_ms = row.moment("started");
    line.ended_ms = row.moment("ended");
    line.gpus = row.number("gpus").value_or(0);
    for (const auto& [name, value] : {std::pair("cpu", &line.cpu),
                                      {"mem", &line.mem},
                                      {"gpu", &line.gpu},
                                      {"kwh", &line.kwh},
                                      {"cost", &line.cost}}) {
      *value = row.number(name);
    }
  }
  return lines;
}

Prices parse_prices(const std::string& body) {
  sj::parser parser;
  const auto rows = data_in<sj::array>(parser, body);
  Prices prices;
  sj::object first;
  if (rows && rows->at(0).get(first) == simdjson::SUCCESS &&
      first["priced"].get(prices.known) == simdjson::SUCCESS && prices.known) {
    prices.currency = text_of(first, "currency");
  }
  return prices;
}

std::string start_text(std::int64_t started_ms, std::int64_t now, bool brief) {
  const auto local = [](std::int64_t seconds) {
    const std::time_t time = seconds;
    std::tm parts{};
    ::localtime_r(&time, &parts);
    return parts;
  };
  const std::tm start = local(started_ms / 1000);
  const std::tm today = local(now);
  const char* format = "%Y-%m-%d";
  if (start.tm_year == today.tm_year) {
    format = start.tm_yday == today.tm_yday ? "%H:%M" : brief ? "%d %b" : "%d %b %H:%M";
  }
  std::array<char, 40> text{};
  return {text.data(), std::strftime(text.data(), text.size(), format, &start)};
}

std::string cost_text(double cost) {
  return std::abs(cost) < 0.005 && cost != 0 ? "< 0.01" : fmt::format("{:.2f}", cost);
}

std::string draw_job_list(const std::vector<JobLine>& jobs,
                          const std::vector<JobLine>& sums,
                          const JobListLook& look) {
  std::set<std::string_view> users;
  for (const JobLine& job : jobs) {
    users.insert(job.user);
  }
  std::vector<JobLine> footers = jobs.size() > 1 ? sums : std::vector<JobLine>();
  for (JobLine& sum : footers) {
    sum.cost = cost_of(jobs, &sum);
  }
  if (look.totals && !jobs.empty()) {
    footers.push_back(grand_total(jobs, sums));
  }
  const auto columns_of = [&](bool brief) {
    Columns columns(job_columns(look, users.size() > 1));
    for (const auto& [lines, is_sum] : {std::pair(&jobs, false), {&footers, true}}) {
      if (is_sum && !lines->empty()) {
        columns.add(std::vector<std::string>(row_of({}, true, look, brief).size()));
      }
      for (const JobLine& line : *lines) {
        auto row = row_of(line, is_sum, look, brief);
        if (users.size() <= 1) {
          row[2].clear();
        }
        columns.add(std::move(row));
      }
    }
    columns.drop_empty();
    return columns;
  };
  const std::string_view mark = look.ascii ? "~" : "…";
  Columns columns = columns_of(false);
  if (!columns.fit(look.width, mark)) {
    columns = columns_of(true);
    columns.fit(look.width, mark);
  }
  const std::vector<std::string> lines = columns.lines();
  std::string out = look.bold ? "\x1b[1m" + lines.front() + "\x1b[0m\n" : lines.front() + "\n";
  for (std::size_t i = 1; i < lines.size(); ++i) {
    out += lines[i] + "\n";
    for (const std::string& below :
         i <= jobs.size() ? jobs[i - 1].below : std::vector<std::string>()) {
      out += below + "\n";
    }
  }
  return out;
}

}  // namespace ceems::cacct
