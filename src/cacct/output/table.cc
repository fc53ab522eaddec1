#include "cacct/output/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/time_text.h"
#include "cacct/output/quantity.h"

namespace ceems::cacct {
namespace {

constexpr std::string_view kTimes = "total_time_seconds";
constexpr std::string_view kAllocation = "allocation";
/// Whatever a server claims, more seconds or jobs than this are not shown.
constexpr std::int64_t kMaxCount = 1'000'000'000'000'000;

bool is_energy(const Field& field) {
  return field.tag.ends_with("_kwh");
}
bool is_emissions(const Field& field) {
  return field.tag.ends_with("_gms");
}

/// "Host Energy(kWh)" becomes "Host Energy", because each cell has its own unit.
std::string title_of(const Field& field, const TableOptions& options) {
  const bool bare = options.fitting_units && (is_energy(field) || is_emissions(field));
  return bare ? field.title.substr(0, field.title.find('(')) : field.title;
}

/// The names that a metric has in any unit: names of the first unit, then new ones as they come.
std::vector<std::string> keys_of(const Field& field, const std::vector<Record>& units) {
  std::vector<std::string> keys;
  for (const Record& unit : units) {
    if (const auto* numbers = unit.numbers(field.tag)) {
      for (const auto& [key, value] : *numbers) {
        if (std::ranges::find(keys, key) == keys.end()) {
          keys.push_back(key);
        }
      }
    }
  }
  return keys;
}

std::vector<Column> make_columns(const std::vector<Field>& fields,
                                 const std::vector<Record>& units,
                                 const TableOptions& options) {
  std::vector<Column> columns;
  for (const Field& field : fields) {
    const std::string title = title_of(field, options);
    const auto keys =
        field.kind == FieldKind::kText ? std::vector<std::string>() : keys_of(field, units);
    if (keys.size() <= 1) {
      columns.push_back(
          {.field = field, .key = keys.empty() ? "" : keys.front(), .title = title, .sub = {}});
      continue;
    }
    for (const std::string& key : keys) {
      columns.push_back({.field = field, .key = key, .title = title, .sub = key});
    }
  }
  return columns;
}

std::optional<double> number_of(const Record& record, std::string_view tag, std::string_view key) {
  if (const auto* numbers = record.numbers(tag)) {
    for (const auto& [name, value] : *numbers) {
      if (name == key) {
        return value;
      }
    }
  }
  return std::nullopt;
}

std::string metric_cell(const Record& record, const Column& column, const TableOptions& options) {
  const auto value = number_of(record, column.field.tag, column.key);
  if (!value) {
    return {};
  }
  return options.fitting_units ? fitting_text(column.field, column.key, *value)
                               : number_text(column.field.kind, *value);
}

std::string footer_cell(const Record& usage, const Column& column, const TableOptions& options) {
  const Field& field = column.field;
  if (field.kind != FieldKind::kText) {
    return metric_cell(usage, column, options);
  }
  if (field.name == "jobid") {
    return std::string(usage.text("num_units"));
  }
  if (field.name == "elapsed") {
    const double seconds = number_of(usage, kTimes, "walltime").value_or(0);
    const auto walltime = static_cast<std::int64_t>(std::clamp<double>(seconds, 0, kMaxCount));
    return walltime > 0 ? elapsed_text(walltime) : std::string();
  }
  const bool named = field.name == "account" || field.name == "group" || field.name == "user";
  return named ? std::string(usage.text(field.tag)) : std::string();
}

/// What the server weighs an average with when it adds up units.
std::string_view weight_of(std::string_view tag) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWeights{{
      {"avg_cpu_usage", "alloc_cputime"},
      {"avg_cpu_mem_usage", "alloc_cpumemtime"},
      {"avg_gpu_usage", "alloc_gputime"},
      {"avg_gpu_mem_usage", "alloc_gpumemtime"},
  }};
  const auto* const found = std::ranges::find(kWeights, tag, [](const auto& w) { return w.first; });
  return found == kWeights.end() ? std::string_view("walltime") : found->second;
}

/// The sum of units or of usages. Averages are weighed as the server does it; of least and greatest
/// values the least and the greatest is taken.
Record total_of(const std::vector<const Record*>& records) {
  std::map<std::string, std::map<std::string, double>> sums;
  std::map<std::string, std::map<std::string, double>> weights;
  std::int64_t units = 0;
  for (const Record* one : records) {
    const Record& record = *one;
    units += record.text("num_units").empty()
                 ? 1
                 : std::clamp<std::int64_t>(record.whole("num_units"), 0, kMaxCount);
    for (const auto& [tag, numbers] : record.metrics) {
      if (tag == kAllocation) {
        continue;
      }
      const bool average = tag.starts_with("avg_");
      const double weight = average ? number_of(record, kTimes, weight_of(tag)).value_or(0) : 1;
      for (const auto& [key, value] : numbers) {
        if (tag.starts_with("min_") || tag.starts_with("max_")) {
          const auto [extreme, fresh] = sums[tag].try_emplace(key, value);
          extreme->second = tag.starts_with("min_") ? std::min(extreme->second, value)
                                                    : std::max(extreme->second, value);
          continue;
        }
        sums[tag][key] += value * weight;
        weights[tag][key] += weight;
      }
    }
  }
  Record total;
  total.texts["num_units"] = fmt::to_string(units);
  for (const auto& [tag, numbers] : sums) {
    for (const auto& [key, sum] : numbers) {
      const double weight = tag.starts_with("avg_") ? weights[tag][key] : 1;
      if (weight > 0) {
        total.metrics[tag].emplace_back(key, sum / weight);
      }
    }
  }
  return total;
}

}  // namespace

std::optional<std::vector<Record>> sums_of(const std::vector<Record>& units) {
  std::map<std::pair<std::string_view, std::string_view>, std::vector<const Record*>> groups;
  for (const Record& unit : units) {
    if (!number_of(unit, kTimes, "alloc_cputime")) {
      return std::nullopt;
    }
    groups[{unit.text("username"), unit.text("project")}].push_back(&unit);
  }
  std::vector<Record> sums;
  for (const auto& [key, members] : groups) {
    Record& sum = sums.emplace_back(total_of(members));
    for (const char* tag : {"username", "project", "groupname"}) {
      if (const auto text = members.front()->text(tag); !text.empty()) {
        sum.texts[tag] = text;
      }
    }
  }
  return sums;
}

void add_slurm_ids(std::vector<Record>& units) {
  for (Record& unit : units) {
    for (const auto& [job, place, mark] :
         {std::tuple("array_job", "array_task", '_'), std::tuple("het_job", "het_offset", '+')}) {
      const auto first = number_of(unit, kAllocation, job);
      const auto second = number_of(unit, kAllocation, place);
      if (first && second) {
        unit.texts["slurm_id"] = fmt::format("{:.0f}{}{:.0f}", *first, mark, *second);
      }
    }
  }
}

std::string fitting_text(const Field& field, std::string_view key, double value) {
  if (is_energy(field)) {
    return energy_text(value);
  }
  if (is_emissions(field)) {
    return emissions_text(value);
  }
  if (field.name == "allocation" && key == "mem") {
    return bytes_text(value);
  }
  return number_text(field.kind, value);
}

Table make_table(const std::vector<Field>& fields,
                 const std::vector<Record>& units,
                 const std::vector<Record>& usage,
                 const TableOptions& options) {
  Table table;
  table.columns = make_columns(fields, units, options);
  for (const Record& unit : units) {
    Table::Row& row = table.units.emplace_back();
    for (const Column& column : table.columns) {
      row.push_back(column.field.kind == FieldKind::kText ? std::string(unit.text(column.field.tag))
                                                          : metric_cell(unit, column, options));
    }
  }
  const auto add_footer = [&](const Record& record) {
    Table::Row& row = table.footers.emplace_back();
    for (const Column& column : table.columns) {
      row.push_back(footer_cell(record, column, options));
    }
  };
  std::ranges::for_each(usage, add_footer);
  if (options.totals && !usage.empty()) {
    std::vector<const Record*> all;
    all.reserve(usage.size());
    for (const Record& record : usage) {
      all.push_back(&record);
    }
    Record total = total_of(all);
    total.texts["num_units"] += " total";
    add_footer(total);
  }
  return table;
}

Table Table::without_empty_columns() const {
  Table result;
  result.units.resize(units.size());
  result.footers.resize(footers.size());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool used = std::ranges::any_of(units, [&](const Row& row) { return !row[i].empty(); });
    if (!used && i > 0) {
      continue;
    }
    result.columns.push_back(columns[i]);
    for (std::size_t row = 0; row < units.size(); ++row) {
      result.units[row].push_back(units[row][i]);
    }
    for (std::size_t row = 0; row < footers.size(); ++row) {
      result.footers[row].push_back(footers[row][i]);
    }
  }
  return result;
}

}  // namespace ceems::cacct
