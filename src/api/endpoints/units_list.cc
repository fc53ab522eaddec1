// Lists of units.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/accounting/accounting.h"
#include "api/answer/long_answer.h"
#include "api/answer/numbers.h"
#include "api/endpoints/all.h"
#include "api/endpoints/unit_filter.h"
#include "api/request/list_params.h"
#include "base/json.h"

namespace ceems::api {
namespace {

using store::Fact;

/// The columns of the answer and of the query, which has the columns that they are computed from.
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
    facts_.insert(facts_.end(), kCostFacts.begin(), kCostFacts.end());
    return facts_.size() - kCostFacts.size();
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

}  // namespace

Endpoints units_list_endpoints() {
  const Endpoint list{
      .handler = get_unit_list,
      .data = {.name = "UnitTable",
               .one = true,
               .definitions = R"json("UnitTable": {
        "type": "object",
        "required": ["columns", "rows"],
        "additionalProperties": false,
        "properties": {
          "columns": {"type": "array", "items": {"type": "string"}, "description": "Names of the columns."},
          "rows": {"type": "array", "items": {"type": "array"}, "description": "The values of each row; null: not known."},
          "partial": {"const": true, "description": "Units of an old database are still missing."},
          "searched": {"const": "ids", "description": "There are too many units to search all of them for words: only ids were searched."}
        }
      })json",
               .example = R"({"columns":["cluster_id","uuid","name","state","cpu","kwh"],)"
                          R"("rows":[["gpu-b","1099550","train_7","COMPLETED",22.4,41.2],)"
                          R"(["hpc-a","7001",null,"RUNNING",97.1,null]]})"},
      .params = kUnitFilterParams.with({Param::kSort, Param::kOrder, Param::kLimit, Param::kCursor,
                                        Param::kColumns, Param::kFormat}),
      .window = WindowKind::kListed,
      .table = true,
      .priced = true};
  return {list.for_users("units/list",
                         "The caller's units: filtered, sorted and in pages; or all as CSV.",
                         {Param::kScope}),
          list.for_admins("units/list/admin",
                          "Everybody's units: filtered, sorted and in pages; or all as CSV.")};
}

}  // namespace ceems::api
