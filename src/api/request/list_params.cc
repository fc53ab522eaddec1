#include "api/request/list_params.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "api/request/paging.h"
#include "base/strings.h"
#include "base/time/durations.h"
#include "store/advice_rules.h"

namespace ceems::api {
namespace {

using store::Fact;

constexpr std::size_t kMaxWords = 8;
constexpr std::size_t kMaxWord = 128;
constexpr std::size_t kMaxValues = 200;
constexpr std::size_t kDefaultRows = 100;
constexpr std::size_t kMaxRows = 1000;

constexpr std::array<std::string_view, 8> kFailed{
    "FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "ERROR", "EXIT"};

struct Range {
  Param param;
  Fact fact;
  double parts;  ///< in which the table counts
};
constexpr std::array<Range, 9> kRanges{{{Param::kCpu, Fact::kCpu, 100},
                                        {Param::kMem, Fact::kMem, 100},
                                        {Param::kGpu, Fact::kGpu, 100},
                                        {Param::kGpuMem, Fact::kGpuMem, 100},
                                        {Param::kKwh, Fact::kKwh, 1e9},
                                        {Param::kUnused, Fact::kUnused, 1e9},
                                        {Param::kNotUsed, Fact::kNotUsed, 1e9},
                                        {Param::kGrams, Fact::kGrams, 1e6},
                                        {Param::kWall, Fact::kWall, 1}}};

std::unexpected<Error> wrong(std::string_view name, std::string_view expected) {
  return fail(ErrorCode::kInvalidArgument, "query parameter '{}': expected {}", name, expected);
}
std::unexpected<Error> wrong(Param param, std::string_view expected) {
  return wrong(info_of(param).name, expected);
}

std::string upper(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return result;
}

Result<std::vector<std::string>> limited(Param param, std::vector<std::string> values) {
  if (values.size() > kMaxValues) {
    return wrong(param, fmt::format("at most {} values", kMaxValues));
  }
  return values;
}

Result<> read_states(const Params& params, store::FactFilter& filter) {
  for (const std::string& state : params.list(Param::kState)) {
    const std::string word = upper(state);
    if (word == "RUNNING") {  // by its times: what is called so may wait for its resources
      filter.state_running = true;
    } else if (word == "FAILED") {
      filter.states.insert(filter.states.end(), kFailed.begin(), kFailed.end());
    } else {
      filter.states.push_back(word);
    }
  }
  return filter.states.size() > kMaxValues ? wrong(Param::kState, "fewer values") : Result<>();
}

Result<> read_advice(const Params& params, store::FactFilter& filter) {
  const auto rules = store::advice_rules();
  for (const std::string& id : params.list(Param::kAdvice)) {
    if (id == "any") {
      filter.advice |= store::any_advice();
      continue;
    }
    const auto found = std::ranges::find(rules, id, &store::AdviceRule::id);
    if (found == rules.end()) {
      return wrong(Param::kAdvice, "'any' or the id of a rule");
    }
    filter.advice |= found->mask;
  }
  return {};
}

Result<> read_words(const Params& params, store::FactFilter& filter) {
  std::string_view rest = params.text(Param::kWords);
  while (true) {
    const std::string_view word = take_word(rest);
    if (word.empty()) {
      return {};
    }
    if (filter.words.size() == kMaxWords || word.size() > kMaxWord) {
      return wrong(Param::kWords, fmt::format("at most {} words of {} bytes", kMaxWords, kMaxWord));
    }
    filter.words.push_back(to_lower(word));
  }
}

}  // namespace

Result<store::TimeRange> parse_days(const Params& params, std::int64_t now_ms) {
  constexpr std::int64_t kDefaultDays = 30;
  constexpr std::int64_t kMaxDays = 400;
  CEEMS_TRY(from, parse_seconds("from", params.from));
  CEEMS_TRY(to, parse_seconds("to", params.to));
  store::TimeRange range;
  range.to_ms = to ? *to * kSecondMs : now_ms;
  range.from_ms = from ? *from * kSecondMs : range.to_ms - kDefaultDays * kDayMs;
  if (range.from_ms >= range.to_ms || range.to_ms - range.from_ms > kMaxDays * kDayMs) {
    return wrong(Param::kFrom, fmt::format("at most {} days before 'to'", kMaxDays));
  }
  return range;
}

Result<store::FactRange> parse_range(std::string_view name,
                                     std::string_view text,
                                     Fact fact,
                                     double parts) {
  constexpr double kMaxScaled = 9e18;
  store::FactRange range{.fact = fact, .low = 0, .high = std::numeric_limits<std::int64_t>::max()};
  const auto bound = [&](std::string_view number) -> std::optional<std::int64_t> {
    const auto value = parse_double(number);
    if (!value || !std::isfinite(*value) || *value < 0) {
      return std::nullopt;
    }
    return std::llround(std::min(*value * parts, kMaxScaled));
  };
  const std::size_t dots = text.find("..");
  const std::string_view low = trim(text.substr(0, dots));
  const std::string_view high = dots == std::string_view::npos ? low : trim(text.substr(dots + 2));
  const auto from = low.empty() ? std::optional<std::int64_t>(range.low) : bound(low);
  const auto to = high.empty() ? std::optional<std::int64_t>(range.high) : bound(high);
  if (!from || !to || *from > *to || (low.empty() && high.empty())) {
    return wrong(name, "a range such as 0..20, 50.. or ..5");
  }
  range.low = *from;
  range.high = *to;
  return range;
}

Result<std::size_t> parse_number(std::string_view name,
                                 std::string_view text,
                                 std::size_t least,
                                 std::size_t most,
                                 std::size_t otherwise) {
  if (text.empty()) {
    return otherwise;
  }
  const auto number = parse_int<std::size_t>(text);
  if (!number || *number < least || *number > most) {
    return wrong(name, fmt::format("a whole number from {} to {}", least, most));
  }
  return *number;
}

std::vector<std::string> failed_states() {
  return {kFailed.begin(), kFailed.end()};
}

Result<store::FactFilter> parse_fact_filter(const Params& params,
                                            const std::optional<store::TimeRange>& window) {
  store::FactFilter filter;
  filter.ended = window;
  filter.running = params.running;
  const std::array<std::pair<Param, std::vector<std::string>>, 5> lists{
      {{Param::kClusterId, split_lists(params.clusters)},
       {Param::kProject, split_lists(params.projects)},
       {Param::kUser, split_lists(params.users)},
       {Param::kUuid, split_lists(params.uuids)},
       {Param::kPartitionName, params.list(Param::kPartitionName)}}};
  for (const auto& [param, values] : lists) {
    if (param != Param::kUuid || !params.found_ids) {
      CEEMS_TRY(limited(param, values));
    }
  }
  filter.clusters = lists[0].second;
  filter.projects = lists[1].second;
  filter.users = lists[2].second;
  filter.uuids = lists[3].second;
  filter.partitions = lists[4].second;
  for (const auto read : {read_states, read_advice, read_words}) {
    CEEMS_TRY(read(params, filter));
  }
  for (const Range& range : kRanges) {
    const std::string_view text = params.text(range.param);
    if (text.empty()) {
      continue;
    }
    CEEMS_TRY(parsed, parse_range(info_of(range.param).name, text, range.fact, range.parts));
    filter.ranges.push_back(parsed);
  }
  return filter;
}

bool is_indexed(const store::FactFilter& filter) {
  return filter.partitions.empty() && filter.states.empty() && !filter.state_running &&
         filter.advice == 0 && filter.ranges.empty() && filter.words.empty();
}

std::vector<ListColumn> all_list_columns() {
  std::vector<ListColumn> columns;
  for (const store::FactColumn& column : store::fact_columns()) {
    if (column.shown) {
      columns.push_back({.name = column.name, .fact = column.fact});
    }
    if (column.fact == Fact::kGrams) {
      columns.push_back({.name = "cost", .fact = std::nullopt});
    }
  }
  return columns;
}

Result<ListOptions> parse_list_options(const Params& params) {
  ListOptions options;
  const auto all = all_list_columns();
  for (const std::string& name : params.list(Param::kColumns)) {
    const auto found = std::ranges::find(all, std::string_view(name), &ListColumn::name);
    if (found == all.end()) {
      return wrong(Param::kColumns, fmt::format("columns, got '{}'", printable(name, 40)));
    }
    options.columns.push_back(*found);
  }
  if (options.columns.empty()) {
    std::ranges::copy_if(all, std::back_inserter(options.columns), [](const ListColumn& column) {
      return !column.fact || store::column_of(*column.fact).usual;
    });
  }
  if (!params.sort.empty()) {
    const auto sort = store::find_fact(params.sort);
    if (!sort || !store::column_of(*sort).sorts) {
      return wrong(Param::kSort, "a column that rows can be sorted by");
    }
    options.sort = *sort;
  }
  if (!params.order.empty() && params.order != "asc" && params.order != "desc") {
    return wrong(Param::kOrder, "'asc' or 'desc'");
  }
  const bool text = store::column_of(options.sort).kind == store::FactKind::kText;
  options.descending = params.order.empty() ? !text : params.order == "desc";
  CEEMS_TRY(limit, parse_number("limit", params.limit, 1, kMaxRows, kDefaultRows));
  options.limit = limit;
  const std::string_view format = params.text(Param::kFormat);
  if (!format.empty() && format != "json" && format != "csv") {
    return wrong(Param::kFormat, "'json' or 'csv'");
  }
  options.csv = format == "csv";
  return options;
}

std::string list_cursor_text(std::string_view listing, const ListCursor& cursor) {
  return cursor_text(
      listing, {cursor.backwards ? "<" : ">", cursor.place.value, std::to_string(cursor.place.id)});
}

Result<std::optional<ListCursor>> parse_list_cursor(const Params& params,
                                                    std::string_view listing) {
  if (params.cursor.empty()) {
    return std::nullopt;
  }
  const auto key = cursor_key(params.cursor, listing, 3);
  const auto id = key ? parse_int<std::int64_t>((*key)[2]) : std::nullopt;
  if (!id || ((*key)[0] != "<" && (*key)[0] != ">")) {
    return fail(ErrorCode::kInvalidArgument, "query parameter 'cursor': malformed cursor");
  }
  return ListCursor{.place = {.value = (*key)[1], .id = *id}, .backwards = (*key)[0] == "<"};
}

}  // namespace ceems::api
