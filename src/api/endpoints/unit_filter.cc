#include "api/endpoints/unit_filter.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "access/lists.h"
#include "api/request/list_params.h"
#include "api/request/shown_ids.h"
#include "base/strings.h"
#include "base/time/durations.h"

namespace ceems::api {

void set_owners(const Call& call, store::FactFilter& filter) {
  if (call.admin_route) {
    const std::vector<std::string> users = std::exchange(filter.users, {});
    access::list_everybodys(call.identity, users, filter);
  } else {
    access::list_own(call.identity, access::parse_part(call.params.scope), filter);
  }
}

namespace {

constexpr std::size_t kMaxFoundIds = 10'000;
constexpr std::size_t kMaxShownIds = 50;
constexpr std::uint64_t kMaxHetParts = 128;  // SLURM's limit

/// Finds the units that ids as SLURM shows them name.
class ShownIdSearch {
  /// Units by cluster and place; those that ran again once.
  using ByPlace = std::map<std::pair<std::string, std::uint64_t>, std::string>;

 public:
  ShownIdSearch(const Services& services, store::FactFilter rows)
      : services_(&services), rows_(std::move(rows)) {}

  /// Adds the ids of the units that `text` names; false if none match, or for any other text.
  Result<bool> add(std::string_view text) {
    const auto shown = parse_shown_ids(text);
    if (!shown) {
      return false;
    }
    if (++asked_ > kMaxShownIds) {
      return fail(ErrorCode::kInvalidArgument, "at most {} ids of arrays or their tasks",
                  kMaxShownIds);
    }
    store::FactListQuery query{
        .filter = rows_,
        .columns = {store::Fact::kArray, store::Fact::kUuid, store::Fact::kClusterId},
        .sort = store::Fact::kArray,  // the id itself comes before those that it begins
        .descending = false,
        .limit = kMaxFoundIds};
    query.filter.array_prefix = shown->prefix;
    QueryTimer timer(*services_->metrics, Query::kUnits);
    CEEMS_TRY(cursor, timer.run([&] { return services_->reader->unit_facts(query); }));
    ByPlace by_place;
    while (true) {
      CEEMS_TRY(row, timer.run([&] { return cursor->next(); }));
      if (!row) {
        break;
      }
      if (const auto place = shown->place_of(cursor->text(0))) {
        by_place.try_emplace({std::string(cursor->text(2)), *place}, cursor->text(1));
      }
    }
    if (by_place.empty()) {
      CEEMS_TRY(add_old_parts(text, *shown, by_place));
    }
    for (const auto& [place, id] : by_place) {
      if (known_.insert(id).second) {
        found_.push_back(id);
      }
    }
    if (found_.size() > kMaxFoundIds) {
      return fail(ErrorCode::kInvalidArgument, "more than {} units", kMaxFoundIds);
    }
    return !by_place.empty();
  }

  /// Whether there is a unit of this id: another manager may have ids that look like steps.
  Result<bool> has(std::string_view id) {
    store::FactListQuery query{.filter = rows_, .columns = {store::Fact::kUuid}, .limit = 1};
    query.filter.uuids = {std::string(id)};
    QueryTimer timer(*services_->metrics, Query::kUnits);
    CEEMS_TRY(cursor, timer.run([&] { return services_->reader->unit_facts(query); }));
    return timer.run([&] { return cursor->next(); });
  }

  void keep(std::string_view id) {
    if (known_.insert(std::string(id)).second) {
      found_.emplace_back(id);
    }
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(found_); }

 private:
  /// Parts of a heterogeneous job that was stored before its group was. SLURM numbers them one
  /// after the other, so part 1 of 8200 is 8201 if all from 8200 to it are jobs without a group
  /// that one user submitted at the same time. Not for `8200+*`, which would take in other such
  /// jobs.
  Result<> add_old_parts(std::string_view text, const ShownIds& shown, ByPlace& by_place) {
    const std::size_t plus = text.find('+');
    const auto first = parse_int<std::uint64_t>(text.substr(0, plus));
    if (plus == std::string_view::npos || shown.places.empty() || !first) {
      return {};
    }
    store::FactListQuery query{
        .filter = rows_,
        .columns = {store::Fact::kUuid, store::Fact::kClusterId, store::Fact::kArray,
                    store::Fact::kUser, store::Fact::kCreated},
        .limit = kMaxFoundIds};
    query.filter.names.everybody = true;  // the owners are compared, not shown
    for (std::uint64_t place = 0; place < kMaxHetParts; ++place) {
      query.filter.uuids.push_back(std::to_string(*first + place));
    }
    QueryTimer timer(*services_->metrics, Query::kUnits);
    CEEMS_TRY(cursor, timer.run([&] { return services_->reader->unit_facts(query); }));
    struct Owner {
      std::string user;
      std::int64_t created_ms = 0;
      bool operator==(const Owner&) const = default;
    };
    std::map<std::pair<std::string, std::string>, Owner> alone;  // by cluster and id
    while (true) {
      CEEMS_TRY(row, timer.run([&] { return cursor->next(); }));
      if (!row) {
        break;
      }
      if (cursor->text(2).empty() && cursor->integer(4) > 0) {
        alone.try_emplace(
            {std::string(cursor->text(1)), std::string(cursor->text(0))},
            Owner{.user = std::string(cursor->text(3)), .created_ms = cursor->integer(4)});
      }
    }
    for (const auto& [start, owner] : alone) {
      if (start.second != query.filter.uuids.front()) {
        continue;
      }
      std::uint64_t parts = 0;
      for (const std::string& id : query.filter.uuids) {
        const auto part = alone.find({start.first, id});
        if (part == alone.end() || part->second != owner) {
          break;
        }
        const std::string as_shown = fmt::format("{}+{}", *first, parts++);
        if (const auto place = shown.place_of(as_shown)) {
          by_place.try_emplace({start.first, *place}, id);
        }
      }
      if (parts < 2) {
        by_place.clear();  // a job of its own
      }
    }
    return {};
  }

  const Services* services_;
  store::FactFilter rows_;
  std::size_t asked_ = 0;
  std::set<std::string> known_;
  std::vector<std::string> found_;  ///< in the order of the question
};

}  // namespace

Result<> find_shown_ids(const Services& services, Call& call) {
  Params& params = call.params;
  store::FactFilter rows;
  rows.clusters = split_lists(params.clusters);
  rows.projects = split_lists(params.projects);
  rows.users = split_lists(params.users);
  set_owners(call, rows);
  ShownIdSearch search(services, std::move(rows));
  for (const std::string& value : params.uuids) {
    const auto parts = split_ids(value);
    if (std::ranges::none_of(parts, [](std::string_view part) {
          return parse_shown_ids(part).has_value() || job_of_step(part) != part;
        })) {
      search.keep(value);
      continue;
    }
    for (const std::string_view part : parts) {
      const std::string_view job = job_of_step(part);
      CEEMS_TRY(found, search.add(job));
      if (!found) {
        CEEMS_TRY(whole, job == part ? Result<bool>(true) : search.has(part));
        search.keep(whole ? part : job);
      }
      params.found_ids = params.found_ids || found;
    }
  }
  for (auto& [param, text] : params.others) {
    if (param != Param::kWords) {
      continue;
    }
    std::string words;
    std::string_view rest = text;
    for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) {
      CEEMS_TRY(found, search.add(word));
      if (!found) {
        words.append(words.empty() ? "" : " ").append(word);
      }
      params.found_ids = params.found_ids || found;
    }
    text = std::move(words);
  }
  params.uuids = search.take();
  return {};
}

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

void answer_too_much(Call& call) {
  answer_error(*call.response, ApiErrorType::kBadData,
               "the period has too many units: choose a shorter period (query parameters 'from' "
               "and 'to')");
}

Result<std::string> notes_of(const Services& services, Searched searched) {
  CEEMS_TRY(complete, services.reader->facts_complete());
  std::string notes;
  notes += complete ? "" : R"(,"partial":true)";
  notes += searched == Searched::kIds ? R"(,"searched":"ids")" : "";
  return notes;
}

std::optional<std::string> notes_if_answerable(const Services& services,
                                               Call& call,
                                               store::FactFilter& filter) {
  const auto searched = check_amount(services, call, filter);
  if (searched && *searched == Searched::kRefused) {
    answer_too_much(call);
    return std::nullopt;
  }
  auto notes = searched ? notes_of(services, *searched) : fail(searched.error());
  if (!notes) {
    answer_failure(*call.response, notes.error());
    return std::nullopt;
  }
  return *std::move(notes);
}

std::optional<double> cost_of(Costs& costs,
                              const store::Cursor& row,
                              std::size_t place,
                              std::int64_t now_ms) {
  constexpr double kNano = 1e-9;
  if (!costs.any()) {
    return std::nullopt;
  }
  const std::int64_t energy = row.integer(place);
  const std::int64_t started = row.integer(place + 4);
  const std::int64_t ended = row.integer(place + 5);
  return costs.of(std::string(row.text(place + 3)), started, ended > 0 ? ended : now_ms,
                  energy < 0 ? std::nullopt : std::optional(static_cast<double>(energy) * kNano),
                  static_cast<double>(row.integer(place + 1)) / kHourSeconds,
                  static_cast<double>(row.integer(place + 2)) / kHourSeconds);
}

}  // namespace ceems::api
