#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/strings.h"
#include "store/json.h"
#include "store/schema/sums_columns.h"
#include "store/sums/unit_sums.h"
#include "store/sums/usage_sums.h"
#include "tool/db/layout.h"
#include "tool/db/verify.h"

namespace ceems::tool::db {
namespace {

using store::SumsOf;
using store::UsageSums;

constexpr std::string_view kKeyColumns = "cluster_id,username,project,groupname,resource_manager";
/// Of the result columns: the key with `ended`, the number of units, the maps.
constexpr std::size_t kKeySize = 6;
constexpr std::size_t kFirstMap = kKeySize + 1;

/// The columns of sums: the maps of units, then the weights of those that are averages.
const std::string& sums_list() {
  static const std::string kList = store::sums_columns(store::kAllMaps);
  return kList;
}

/// The maps of units and daily_usage in tables of this version of the reference.
std::string maps_list(int reference) {
  const std::string columns = store::unit_columns(store::kAllMaps, reference);
  auto names = split(columns, ',');
  names.resize(std::tuple_size_v<store::UsageMaps>);  // without the weights
  return fmt::format("{}", fmt::join(names, ","));
}

using Key = std::array<std::string, kKeySize>;
using Rows = std::map<Key, UsageSums>;

model::MetricMap map_of(const Cell& cell) {
  auto map = store::parse_metric_map(cell.text);
  return map ? std::move(*map) : model::MetricMap();  // reported with the values
}

/// Adds a row of units or daily_usage, or of sums.
void add_row(const Row& row, bool is_sum, Rows& rows) {
  Key key;
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = row[i].text;
  }
  store::UsageMaps maps;
  for (std::size_t map = 0; map < maps.size(); ++map) {
    maps[map] = map_of(row[kFirstMap + map]);
  }
  UsageSums one;
  one.num_units = parse_int<std::int64_t>(row[kKeySize].text).value_or(0);
  if (is_sum) {
    one.maps = std::move(maps);
    std::size_t column = kFirstMap + one.maps.size();
    for (std::size_t metric = 0; metric < model::kMetricCount; ++metric) {
      if (store::is_average(metric)) {
        one.weights[metric] = map_of(row[column++]);
      }
    }
  } else {
    one.add_row(maps, store::kAllMaps);
  }
  rows[std::move(key)].add(one);
}

bool near(double a, double b) {
  constexpr double kRounding = 1e-6;
  return std::abs(a - b) <= kRounding * std::max({1.0, std::abs(a), std::abs(b)});
}

/// Whether all names have the same value; a missing one is 0.
bool same(const model::MetricMap& a, const model::MetricMap& b) {
  const auto covered = [](const model::MetricMap& some, const model::MetricMap& others) {
    return std::ranges::all_of(some, [&others](const auto& entry) {
      const auto found = others.find(entry.first);
      return near(entry.second, found == others.end() ? 0 : found->second);
    });
  };
  return covered(a, b) && covered(b, a);
}

/// The names of the columns that differ.
std::vector<std::string> differences(const UsageSums& stored, const UsageSums& counted) {
  static const std::vector<std::string_view> kColumns = split(sums_list(), ',');
  std::vector<std::string> names;
  if (stored.num_units != counted.num_units) {
    names.push_back(
        fmt::format("num_units ({} instead of {})", stored.num_units, counted.num_units));
  }
  std::size_t column = 0;
  for (std::size_t map = 0; map < stored.maps.size(); ++map, ++column) {
    if (!same(stored.maps[map], counted.maps[map])) {
      names.emplace_back(kColumns.at(column));
    }
  }
  for (std::size_t metric = 0; metric < stored.weights.size(); ++metric) {
    if (!same(stored.weights[metric], counted.weights[metric])) {
      names.emplace_back(kColumns.at(column));
    }
    column += store::is_average(metric) ? 1 : 0;
  }
  return names;
}

class Check {
 public:
  Check(Tables& tables, Progress& progress, const std::function<void(std::string)>& fault)
      : tables_(tables), progress_(progress), fault_(fault) {}

  Result<> run() {
    CEEMS_TRY(custom_stats, has_custom_stats(tables_));
    maps_list_ = maps_list(custom_stats ? store::kNewestReference : store::kOldestReference);
    CEEMS_TRY(listed, tables_.query("SELECT level, span FROM ceems_unit_spans ORDER BY 1, 2"));
    for (const Row& row : listed) {
      spans_.emplace(parse_int<int>(row[0].text).value_or(-1),
                     parse_int<std::int64_t>(row[1].text).value_or(-1));
    }
    std::int64_t done = 0;
    for (const auto& [level, span] : spans_) {
      progress_.show("comparing sums", done++, static_cast<std::int64_t>(spans_.size()), "spans");
      CEEMS_TRY(compare(level, span));
    }
    return {};
  }

 private:
  Result<> compare(int stored_level, std::int64_t span) {
    const SumsOf what = stored_level < store::kSpanLevels ? SumsOf::kUnitSums : SumsOf::kDaySums;
    const int level = what == SumsOf::kUnitSums ? stored_level : stored_level - store::kSpanLevels;
    const int first = what == SumsOf::kUnitSums ? 0 : store::kFirstDayLevel;
    if (level < first || level >= store::kSpanLevels || span < 0) {
      fault_(fmt::format("span {} of level {}: no such level or span", span, stored_level));
      return {};
    }
    Rows stored;
    Rows counted;
    auto done = read_sums(stored_level, span, stored);
    if (level == first) {
      done = done ? read_rows(what, level, span, counted) : done;
    } else {
      for (std::int64_t part = span * store::kSpansOfNext;
           done && part < (span + 1) * store::kSpansOfNext; ++part) {
        // Only spans before the first row are not listed. They should have no rows.
        done = spans_.contains({stored_level - 1, part})
                   ? read_sums(stored_level - 1, part, counted)
                   : read_rows(what, level - 1, part, counted);
      }
    }
    if (done) {
      report(stored_level, span, stored, counted);
    }
    return done;
  }

  Result<> read(const std::string& sql, bool is_sum, Rows& rows) {
    CEEMS_TRY(cursor, tables_.stream(sql));
    Row row;
    while (true) {
      CEEMS_TRY(more, cursor->next(row));
      if (!more) {
        return {};
      }
      add_row(row, is_sum, rows);
    }
  }

  Result<> read_sums(int stored_level, std::int64_t span, Rows& rows) {
    return read(fmt::format("SELECT {}, ended, num_units, {} FROM ceems_unit_sums"
                            " WHERE level = {} AND span = {}",
                            kKeyColumns, sums_list(), stored_level, span),
                true, rows);
  }

  Result<> read_rows(SumsOf what, int level, std::int64_t span, Rows& rows) {
    const bool days = what == SumsOf::kDaySums;
    const std::int64_t width = store::span_width(level);
    return read(
        fmt::format("SELECT {}, {}, {}, {} FROM {} WHERE last_updated_at_ts BETWEEN {} AND {}",
                    kKeyColumns, days ? "0" : "CASE WHEN ended_at_ts > 0 THEN 1 ELSE 0 END",
                    days ? "num_units" : "1", maps_list_, days ? "daily_usage" : "units",
                    span * width, (span + 1) * width - 1),
        false, rows);
  }

  void report(int stored_level, std::int64_t span, const Rows& stored, const Rows& counted) {
    std::set<Key> keys;
    for (const Rows* rows : {&stored, &counted}) {
      for (const auto& [key, sums] : *rows) {
        keys.insert(key);
      }
    }
    static const UsageSums kNothing;
    for (const Key& key : keys) {
      const auto at = [&key](const Rows& rows) -> const UsageSums& {
        const auto found = rows.find(key);
        return found == rows.end() ? kNothing : found->second;
      };
      const std::vector<std::string> names = differences(at(stored), at(counted));
      if (!names.empty()) {
        fault_(fmt::format("span {} of level {}: cluster {}, user {}, project {}: {}", span,
                           stored_level, printable(key[0]), printable(key[1]), printable(key[2]),
                           fmt::join(names, ", ")));
      }
    }
  }

  Tables& tables_;
  Progress& progress_;
  const std::function<void(std::string)>& fault_;
  std::string maps_list_;                         ///< the maps that units and daily_usage have
  std::set<std::pair<int, std::int64_t>> spans_;  ///< stored level and number
};

}  // namespace

Result<> check_spans(Tables& tables,
                     Progress& progress,
                     const std::function<void(std::string)>& fault) {
  return Check(tables, progress, fault).run();
}

}  // namespace ceems::tool::db
