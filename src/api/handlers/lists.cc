// Lists of units and sums over them.
#include "access/lists.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/long_answer.h"
#include "api/answer/numbers.h"
#include "api/handlers/handlers.h"
#include "api/request/list_params.h"
#include "base/json.h"

namespace ceems::api {
namespace {

using store::Fact;
using store::FactKind;

constexpr double kHour = 3600;
constexpr double kNano = 1e-9;

void answer_too_much(Call& call) {
  answer_error(*call.response, ApiErrorType::kBadData,
               "the period has too many units: choose a shorter period (query parameters 'from' "
               "and 'to')");
}

/// Sets whose units the filter may select and whose names it may see.
void set_owners(const Call& call, store::FactFilter& filter) {
  if (call.admin_route) {
    const std::vector<std::string> users = std::exchange(filter.users, {});
    access::list_everybodys(call.identity, users, filter);
  } else {
    access::list_own(call.identity, access::parse_part(call.params.scope), filter);
  }
}

/// Where a filter finds its rows.
enum class Searched { kRefused, kAll, kIds };

/// Whether there is too much to read. A search for words without a period then looks at ids only.
Result<Searched> check_amount(const Services& services,
                              const Call& call,
                              store::FactFilter& filter) {
  QueryTimer timer(*services.metrics, Query::kUnits);
  CEEMS_TRY(many, timer.run([&] { return services.reader->has_more_units(filter, kMaxUnits); }));
  if (!many) {
    return Searched::kAll;
  }
  if (filter.ended || filter.words.empty()) {
    return Searched::kRefused;
  }
  std::string_view words = call.params.text(Param::kWords);
  const std::size_t first = words.find_first_not_of(" \t\r\n");
  words.remove_prefix(std::min(first, words.size()));
  filter.id_prefix = words.substr(0, words.find_first_of(" \t\r\n"));
  return Searched::kIds;
}

/// The cost of a unit, from kWh, the allocated seconds, cluster, start and end at this place.
std::optional<double> cost_of(Costs& costs,
                              const store::Cursor& row,
                              std::size_t place,
                              std::int64_t now_ms) {
  if (!costs.any()) {
    return std::nullopt;
  }
  const std::int64_t energy = row.integer(place);
  const std::int64_t started = row.integer(place + 4);
  const std::int64_t ended = row.integer(place + 5);
  return costs.of(std::string(row.text(place + 3)), started, ended > 0 ? ended : now_ms,
                  energy < 0 ? std::nullopt : std::optional(static_cast<double>(energy) * kNano),
                  static_cast<double>(row.integer(place + 1)) / kHour,
                  static_cast<double>(row.integer(place + 2)) / kHour);
}

/// The columns of the answer and those of the query, which has what they are computed from.
class ListFormat {
 public:
  ListFormat(const ListOptions& options, Costs costs, std::int64_t now_ms)
      : options_(options), costs_(std::move(costs)), now_ms_(now_ms) {
    for (const ListColumn& column : options.columns) {
      places_.push_back(column.fact ? place_of(*column.fact) : cost_place());
    }
  }

  [[nodiscard]] const std::vector<Fact>& facts() const { return facts_; }

  void append_json(JsonWriter& json, const store::Cursor& row) {
    json.begin_array();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (const auto& fact = options_.columns[i].fact) {
        append_json_cell(json, store::column_of(*fact).kind, row.text(places_[i]),
                         row.integer(places_[i]));
      } else {
        append_number(json, cost(row, places_[i]));
      }
    }
    json.end_array();
  }

  void append_csv(std::string& out, const store::Cursor& row, const TimeZone& zone) {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      out += i == 0 ? "" : ",";
      if (const auto& fact = options_.columns[i].fact) {
        append_csv_cell(out, store::column_of(*fact).kind, row.text(places_[i]),
                        row.integer(places_[i]), zone);
      } else if (const auto money = cost(row, places_[i])) {
        out += fmt::to_string(*money);
      }
    }
    out += "\r\n";
  }

  void append_csv_head(std::string& out) const {
    for (std::size_t i = 0; i < options_.columns.size(); ++i) {
      out += i == 0 ? "" : ",";
      out += options_.columns[i].name;
    }
    out += "\r\n";
  }

  [[nodiscard]] store::FactPlace place(const store::Cursor& row) const {
    return {.value = std::string(row.text(facts_.size())), .id = row.integer(facts_.size() + 1)};
  }

 private:
  std::size_t place_of(Fact fact) {
    const auto found = std::ranges::find(facts_, fact);
    if (found != facts_.end()) {
      return static_cast<std::size_t>(found - facts_.begin());
    }
    facts_.push_back(fact);
    return facts_.size() - 1;
  }
  /// What a cost is computed from stands one after the other.
  std::size_t cost_place() {
    facts_.insert(facts_.end(), {Fact::kKwh, Fact::kCpuSeconds, Fact::kGpuSeconds, Fact::kClusterId,
                                 Fact::kStarted, Fact::kEnded});
    return facts_.size() - 6;
  }
  [[nodiscard]] std::optional<double> cost(const store::Cursor& row, std::size_t place) {
    return cost_of(costs_, row, place, now_ms_);
  }

  const ListOptions options_;
  Costs costs_;
  const std::int64_t now_ms_;
  std::vector<Fact> facts_;
  std::vector<std::size_t> places_;  ///< of the columns, in facts_
};

void answer_page(Call& call,
                 const store::FactListQuery& query,
                 ListFormat& format,
                 const ListOptions& options,
                 std::string_view listing,
                 std::string_view notes,
                 store::Cursor& rows,
                 QueryTimer& timer) {
  std::vector<std::string> lines;
  store::FactPlace first;
  store::FactPlace last;
  bool more = false;
  while (true) {
    const auto row = timer.run([&rows] { return rows.next(); });
    if (!row) {
      answer_failure(*call.response, row.error());
      return;
    }
    if (!*row) {
      break;
    }
    timer.count_row();
    more = lines.size() == options.limit;
    if (more) {
      break;
    }
    JsonWriter line(lines.emplace_back());
    format.append_json(line, rows);
    last = format.place(rows);
    if (lines.size() == 1) {
      first = last;
    }
  }
  if (query.backwards) {
    std::ranges::reverse(lines);
    std::swap(first, last);
  }
  std::string data;
  JsonWriter json(data);
  json.begin_object().key("columns").begin_array();
  for (const ListColumn& column : options.columns) {
    json.value(column.name);
  }
  json.end_array().key("rows").begin_array();
  for (const std::string& line : lines) {
    json.raw(line);
  }
  json.end_array();
  data += notes;
  json.end_object();
  const bool has_next = !lines.empty() && (query.backwards || more);
  const bool has_previous = !lines.empty() && (query.backwards ? more : query.after.has_value());
  const auto cursor = [&](bool there, const store::FactPlace& place, bool backwards) {
    return there ? list_cursor_text(listing, {.place = place, .backwards = backwards}) : "";
  };
  answer_data(*call.response, data, cursor(has_next, last, false),
              cursor(has_previous, first, true));
}

/// Writes rows of CSV piece by piece.
class CsvStream {
 public:
  CsvStream(ListFormat format, TimeZone zone, QueryTimer timer, std::unique_ptr<store::Cursor> rows)
      : format_(std::move(format)), zone_(zone), timer_(std::move(timer)), rows_(std::move(rows)) {}

  void hold(StreamSlots::Slot slot) { slot_ = std::move(slot); }

  /// Appends rows up to about `limit` bytes. Returns false at the end, an error if reading fails.
  Result<bool> fill(std::string& out, std::size_t limit) {
    if (std::exchange(first_, false)) {
      format_.append_csv_head(out);
    }
    while (out.size() < limit) {
      CEEMS_TRY(row, timer_.run([this] { return rows_->next(); }));
      if (!row) {
        rows_.reset();
        slot_ = {};
        return false;
      }
      timer_.count_row();
      format_.append_csv(out, *rows_, zone_);
    }
    return true;
  }

 private:
  static std::unexpected<Error> fail(const Error& error) { return ceems::fail(Error(error)); }

  ListFormat format_;
  TimeZone zone_;
  QueryTimer timer_;
  std::unique_ptr<store::Cursor> rows_;
  StreamSlots::Slot slot_;
  bool first_ = true;
};

void answer_csv(Call& call, std::shared_ptr<CsvStream> stream) {
  answer_long(*call.response, std::move(stream), {}, *call.streams, call.identity.user,
              [](net::Response& response) {
                response.set_header("Content-Type", "text/csv; charset=utf-8; header=present");
                response.set_header("Content-Disposition", "attachment; filename=\"units.csv\"");
                response.set_header("X-Content-Type-Options", "nosniff");
              });
}

/// What sums are of, where they are not the whole.
Result<std::string> notes_of(const Services& services, Searched searched) {
  CEEMS_TRY(complete, services.reader->facts_complete());
  std::string notes;
  notes += complete ? "" : R"(,"partial":true)";
  notes += searched == Searched::kIds ? R"(,"searched":"ids")" : "";
  return notes;
}

struct FacetName {
  std::string_view name;
  Fact fact;
};
constexpr std::array<FacetName, 6> kFacets{{{"state", Fact::kState},
                                            {"project", Fact::kProject},
                                            {"user", Fact::kUser},
                                            {"cluster", Fact::kClusterId},
                                            {"partition", Fact::kPartition},
                                            {"advice", Fact::kAdvice}}};

Result<> read_facets(const Params& params, store::SummaryQuery& query) {
  for (const std::string& name : params.list(Param::kFacets)) {
    const auto found = std::ranges::find(kFacets, std::string_view(name), &FacetName::name);
    if (found == kFacets.end()) {
      return fail(ErrorCode::kInvalidArgument,
                  "query parameter 'facets': expected some of state, project, user, cluster, "
                  "partition, advice");
    }
    query.facets.push_back(found->fact);
  }
  return {};
}

Result<> read_heat(const Params& params, store::SummaryQuery& query) {
  const auto names = split_lists({std::string(params.text(Param::kHeat))});
  if (names.empty()) {
    return {};
  }
  std::array<Fact, 2> both{};
  for (std::size_t i = 0; i < both.size() && names.size() == both.size(); ++i) {
    const auto fact = store::find_fact(names[i]);
    if (fact && store::column_of(*fact).kind == FactKind::kPercent && *fact != Fact::kGpuIdle) {
      both.at(i) = *fact;
    }
  }
  if (std::ranges::find(both, Fact::kClusterId) != both.end()) {  // not set
    return fail(ErrorCode::kInvalidArgument,
                "query parameter 'heat': expected two of cpu, mem, gpu, gpu_mem");
  }
  query.heat = both;
  CEEMS_TRY(bins, parse_number("bins", params.text(Param::kBins), 2, 50, 20));
  query.bins = bins;
  return {};
}

void append_facet(JsonWriter& json, const std::vector<store::FacetValue>& values) {
  constexpr std::size_t kShown = 20;
  json.begin_array();
  store::FacetValue others{.value = "(others)"};
  const auto append = [&json](const store::FacetValue& value) {
    json.begin_array();
    append_json_cell(json, FactKind::kText, value.value, 0);
    json.value(value.units);
    append_number(json, rounded(value.kwh, 6));
    json.end_array();
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i < kShown) {
      append(values[i]);
    } else {
      others.units += values[i].units;
      others.kwh += values[i].kwh;
    }
  }
  if (others.units > 0) {
    append(others);
  }
  json.end_array();
}

/// What all units cost together. Where the price changes with time, they are read one by one; of
/// very many the cost is not known.
Result<std::optional<double>> total_cost(const Services& services,
                                         const store::FactFilter& filter,
                                         const store::UnitSummary& sums) {
  constexpr std::size_t kMaxPricedUnits = 200'000;
  Costs costs = services.accounting->costs();
  if (!costs.any()) {
    return std::optional<double>();
  }
  if (costs.constant()) {
    return costs.of("", 0, 0, sums.kwh, sums.cpu_seconds / kHour, sums.gpu_seconds / kHour);
  }
  if (sums.units > static_cast<std::int64_t>(kMaxPricedUnits)) {
    return std::optional<double>();
  }
  store::FactListQuery query{.filter = filter,
                             .columns = {Fact::kKwh, Fact::kCpuSeconds, Fact::kGpuSeconds,
                                         Fact::kClusterId, Fact::kStarted, Fact::kEnded},
                             .limit = kMaxPricedUnits};
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run([&] { return services.reader->unit_facts(query); });
  double sum = 0;
  while (rows) {
    CEEMS_TRY(row, timer.run([&] { return (*rows)->next(); }));
    if (!row) {
      return std::optional(rounded(sum, 6));
    }
    sum += cost_of(costs, **rows, 0, services.now_ms()).value_or(0);
  }
  return fail(rows.error());
}

std::string summary_json(const store::UnitSummary& sums,
                         const store::SummaryQuery& query,
                         std::optional<double> cost,
                         std::string_view notes) {
  std::string data;
  JsonWriter json(data);
  const auto number = [&json](std::string_view name, double value) {
    json.key(name);
    append_number(json, rounded(value, 6));
  };
  json.begin_object().member("count", sums.units).member("running", sums.running);
  number("kwh", sums.kwh);
  number("cpu_kwh", sums.cpu_kwh);
  number("gpu_kwh", sums.gpu_kwh);
  number("grams", sums.grams);
  json.key("cost");
  append_number(json, cost);
  number("core_hours", sums.cpu_seconds / kHour);
  number("core_hours_measured", sums.cpu_seconds_measured / kHour);
  number("core_hours_used", sums.cpu_seconds_used / kHour);
  number("gpu_hours", sums.gpu_seconds / kHour);
  number("gpu_hours_measured", sums.gpu_seconds_measured / kHour);
  number("gpu_hours_used", sums.gpu_seconds_used / kHour);
  json.key("idle_kwh");
  append_number(json,
                sums.idle_units > 0 ? std::optional(rounded(sums.idle_kwh, 6)) : std::nullopt);
  json.member("idle_measured", sums.idle_units).key("facets").begin_object();
  for (std::size_t i = 0; i < query.facets.size() && i < sums.facets.size(); ++i) {
    const auto name = std::ranges::find(kFacets, query.facets[i], &FacetName::fact);
    append_facet(json.key(name->name), sums.facets[i]);
  }
  json.end_object();
  if (query.heat) {
    json.key("heat").begin_object();
    json.member("x", store::column_of((*query.heat)[0]).name);
    json.member("y", store::column_of((*query.heat)[1]).name);
    json.member("bins", static_cast<std::int64_t>(query.bins)).key("cells").begin_array();
    for (const auto& cell : sums.heat) {
      json.begin_array().value(static_cast<std::int64_t>(cell.x));
      json.value(static_cast<std::int64_t>(cell.y)).value(cell.units);
      append_number(json, rounded(cell.kwh, 4));
      json.end_array();
    }
    json.end_array().end_object();
  }
  data += notes;
  json.end_object();
  return data;
}

}  // namespace

void get_unit_list(const Services& services, Call& call) {
  auto filter = parse_fact_filter(call.params, call.window);
  auto options = filter ? parse_list_options(call.params) : fail(filter.error());
  if (!options) {
    answer_bad_request(call, options.error());
    return;
  }
  const std::string listing =
      fmt::format("{} {} {}", call.route, store::column_of(options->sort).name,
                  options->descending ? "descending" : "ascending");
  const auto cursor = parse_list_cursor(call.params, listing);
  if (!cursor) {
    answer_bad_request(call, cursor.error());
    return;
  }
  set_owners(call, *filter);
  Searched searched = Searched::kAll;
  if (options->csv || options->sort != Fact::kEnded || !is_indexed(*filter)) {
    const auto checked = check_amount(services, call, *filter);
    if (!checked) {
      answer_failure(*call.response, checked.error());
      return;
    }
    searched = *checked;
  }
  if (searched == Searched::kRefused) {
    answer_too_much(call);
    return;
  }
  ListFormat format(*options, services.accounting->costs(), services.now_ms());
  store::FactListQuery query{.filter = std::move(*filter),
                             .columns = format.facts(),
                             .sort = options->sort,
                             .descending = options->descending};
  if (!options->csv) {
    query.limit = options->limit + 1;  // one more shows whether there is another page
    if (*cursor) {
      query.after = (*cursor)->place;
      query.backwards = (*cursor)->backwards;
    }
  }
  const auto notes = notes_of(services, searched);
  if (!notes) {
    answer_failure(*call.response, notes.error());
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  auto rows = timer.run([&] { return services.reader->unit_facts(query); });
  if (!rows) {
    answer_failure(*call.response, rows.error());
    return;
  }
  if (options->csv) {
    answer_csv(call, std::make_shared<CsvStream>(std::move(format), services.zone, std::move(timer),
                                                 std::move(*rows)));
    return;
  }
  answer_page(call, query, format, *options, listing, *notes, **rows, timer);
}

void get_unit_summary(const Services& services, Call& call) {
  auto filter = parse_fact_filter(call.params, call.window);
  if (!filter) {
    answer_bad_request(call, filter.error());
    return;
  }
  store::SummaryQuery query{.filter = std::move(*filter)};
  for (const auto read : {read_facets, read_heat}) {
    if (auto done = read(call.params, query); !done) {
      answer_bad_request(call, done.error());
      return;
    }
  }
  set_owners(call, query.filter);
  const auto searched = check_amount(services, call, query.filter);
  if (!searched) {
    answer_failure(*call.response, searched.error());
    return;
  }
  if (*searched == Searched::kRefused) {
    answer_too_much(call);
    return;
  }
  const auto notes = notes_of(services, *searched);
  if (!notes) {
    answer_failure(*call.response, notes.error());
    return;
  }
  QueryTimer timer(*services.metrics, Query::kUnits);
  const auto sums = timer.run([&] { return services.reader->unit_summary(query); });
  if (!sums) {
    answer_failure(*call.response, sums.error());
    return;
  }
  const auto cost = total_cost(services, query.filter, *sums);
  if (!cost) {
    answer_failure(*call.response, cost.error());
    return;
  }
  answer_data(*call.response, summary_json(*sums, query, *cost, *notes));
}

}  // namespace ceems::api
