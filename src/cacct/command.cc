#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/clock.h"
#include "base/strings.h"
#include "cacct/api.h"
#include "cacct/commands.h"
#include "cacct/listing.h"
#include "cacct/log_file.h"
#include "cacct/output/box.h"
#include "cacct/output/fields.h"
#include "cacct/output/job_list.h"
#include "cacct/output/pager.h"
#include "cacct/output/table.h"
#include "cacct/series/config.h"
#include "cacct/series/dump.h"
#include "cacct/series/tsdb.h"
#include "cacct/session.h"
#include "cacct/time_words.h"

namespace ceems::cacct {
namespace {

constexpr std::int64_t kMaxDumpSeconds = std::int64_t{7} * 86400;  // of the reference from 0.16 on

constexpr std::int64_t kMaxTimeMs = 253'402'300'799'999;  // the end of the year 9999

/// An error of the command line.
std::unexpected<Error> usage_error(std::string message) {
  return fail(Error{.code = ErrorCode::kInvalidArgument, .message = std::move(message)});
}

/// One run of the program.
class Listing {
 public:
  Listing(const Options& options, const Caller& caller)
      : options_(options),
        caller_(caller),
        dumps_(options.series || !options.series_names.empty()),
        lists_(shows_listing(options, ::isatty(STDOUT_FILENO) == 1)),
        now_(std::chrono::duration_cast<std::chrono::seconds>(real_clock().now().time_since_epoch())
                 .count()) {}

  Result<> run() {
    CEEMS_TRY(check_options());
    CEEMS_TRY(read_config());
    CEEMS_TRY(choose_fields());
    if (options_.help_format) {
      return print(fields_help(known_, series_names()), false);
    }
    if (auto asked = ask(); !asked) {
      log_.write(log::Level::kError, "request failed",
                 {{"user", caller_.login}, {"err", asked.error().message}});
      return asked;
    }
    CEEMS_TRY(print_table());
    return dumps_ ? dump() : Result<>();
  }

 private:
  /// What can be said without the configuration.
  Result<> check_options() {
    question_.projects = comma_parts(options_.accounts);
    question_.uuids = id_parts(options_.jobs);
    question_.users = comma_parts(options_.users);
    question_.all_users =
        options_.all_users || std::ranges::find(question_.users, "all") != question_.users.end();
    if (question_.all_users) {
      question_.users.clear();
    }
    if (question_.users.size() == 1 && question_.users.front() == caller_.login) {
      question_.users.clear();
    }
    if (dumps_ && question_.uuids.empty()) {
      return usage_error("explicit job IDs must be passed using --job when --ts is enabled");
    }
    for (const auto& [name, text, time, otherwise] :
         {std::tuple("starttime", &options_.start_time, &question_.from, day_start(now_)),
          std::tuple("endtime", &options_.end_time, &question_.to, now_)}) {
      *time = otherwise;
      if (text->empty()) {
        continue;
      }
      auto parsed = parse_time(*text, now_);
      if (!parsed) {
        return fail(
            std::move(parsed).error().with_context(fmt::format("failed to parse --{} flag", name)));
      }
      *time = *parsed;
    }
    if (options_.gpus && !lists_) {
      return usage_error(
          "--gpus cannot be combined with --format, --long or another output format");
    }
    if (question_.from > question_.to) {
      return usage_error("--starttime is after --endtime");
    }
    if (!options_.account_filter.empty()) {
      RE2::Options quiet;
      quiet.set_log_errors(false);
      filter_.emplace(options_.account_filter, quiet);
      if (!filter_->ok()) {
        return usage_error(fmt::format("--account-filter: {}", printable(filter_->error())));
      }
    }
    return {};
  }

  /// Reads everything that needs privileges, and gives them up.
  Result<> read_config() {
    auto session = open_session(caller_);
    if (!session) {
      // The list of fields needs no configuration.
      const bool absent = session.error().code == ErrorCode::kNotFound;
      return options_.help_format && (absent || !caller_.privileged)
                 ? Result<>()
                 : fail(std::move(session).error());
    }
    config_ = std::move(session->config);
    log_ = std::move(session->log);
    question_.cluster_id = config_.cluster_id;
    return {};
  }

  /// The fields of the server, then the fields of instant queries.
  Result<> choose_fields() {
    known_.assign(server_fields().begin(), server_fields().end());
    for (const SeriesQuery& query : config_.queries) {
      if (query.instant) {
        known_.push_back(instant_field(query));
      }
    }
    if (!options_.format.empty() && !options_.long_format) {
      CEEMS_TRY(chosen, parse_format(options_.format, known_));
      as_given_ = std::move(chosen);
    }
    if (lists_) {
      CEEMS_TRY(listed, parse_format(kJobLineFields, known_));
      as_given_ = std::move(listed);
    }
    if (as_given_.empty()) {
      std::ranges::copy_if(known_, std::back_inserter(as_given_), [this](const Field& field) {
        return options_.long_format ? field.in_long : field.by_default;
      });
    }
    bool needs_ids = dumps_;  // to find the series of each job
    for (const Field& field : as_given_) {
      needs_ids = needs_ids || field.instant;
      if (!field.instant) {
        question_.tags.push_back(field.tag);
      }
    }
    if (needs_ids) {
      question_.tags.emplace_back("uuid");
    }
    // For the sums and for the ids that SLURM shows.
    for (const char* tag :
         {"project", "username", "groupname", "total_time_seconds", "allocation"}) {
      question_.tags.emplace_back(tag);
    }
    return {};
  }

  [[nodiscard]] bool by_default() const { return !options_.long_format && options_.format.empty(); }

  Result<> ask() {
    log_.write(log::Level::kInfo, "request",
               {{"user", caller_.login},
                {"uid", caller_.uid},
                {"gid", caller_.gid},
                {"from", question_.from},
                {"to", question_.to},
                {"accounts", fmt::format("{}", fmt::join(question_.projects, ","))},
                {"jobs", fmt::format("{}", fmt::join(question_.uuids, ","))},
                {"users",
                 question_.all_users ? "all" : fmt::format("{}", fmt::join(question_.users, ","))},
                {"ts", dumps_}});
    CEEMS_TRY(api,
              Api::create(config_.api_url, config_.api_client, config_.user_header, caller_.login));
    api_.emplace(std::move(api));
    CEEMS_TRY(units, api_->units(question_));
    units_ = std::move(units);
    filter(units_);
    add_slurm_ids(units_);
    if (auto sums = sums_of(units_)) {
      usage_ = std::move(*sums);
    } else {
      CEEMS_TRY(usage, api_->usage(question_));
      usage_ = std::move(usage);
      keep_asked_users();
      filter(usage_);
    }
    return add_instant_values();
  }

  void filter(std::vector<Record>& records) const {
    if (filter_) {
      std::erase_if(records, [this](const Record& record) {
        const std::string_view project = record.text("project");
        return !RE2::PartialMatch(re2::StringPiece(project.data(), project.size()), *filter_);
      });
    }
  }

  /// Usage lists all members of the caller's projects; only the users asked for are shown.
  void keep_asked_users() {
    std::erase_if(usage_, [this](const Record& record) {
      const std::string_view user = record.text("username");
      const auto& users = question_.users;
      return !question_.all_users && user != caller_.login &&
             std::ranges::find(users, user) == users.end();
    });
  }

  Result<> add_instant_values() {
    for (const SeriesQuery& query : config_.queries) {
      const auto wanted = std::ranges::find(as_given_, instant_field(query).name, &Field::name);
      if (!query.instant || wanted == as_given_.end() || units_.empty()) {
        continue;
      }
      CEEMS_TRY(connect());
      const InstantWindow window{.from = question_.from, .to = question_.to};
      if (auto added = add_instant_value(*tsdb_, query, window, variables_, units_); !added) {
        fmt::print(stderr, "failed to fetch {}: {}\n", query.name, added.error().message);
        failed_ = true;
      }
    }
    return {};
  }

  /// Connects to the TSDB, which may be the load balancer: the caller's name goes with each query.
  Result<> connect() {
    if (tsdb_) {
      return {};
    }
    CEEMS_TRY(client, connect_tsdb(config_, caller_.login));
    tsdb_ = std::move(client);
    variables_ = tsdb_variables(config_, *tsdb_);
    return {};
  }

  Result<> print_table() {
    if (lists_ && api_) {
      return print(units_.empty() ? no_jobs_text(options_, question_, now_) + "\n"
                                  : listing_text(*api_, options_, question_, units_, usage_, now_),
                   options_.pager);
    }
    std::vector<Field> fields = as_given_;
    std::set<std::string_view> users;
    for (const Record& unit : units_) {
      users.insert(unit.text("username"));
    }
    const bool shown = std::ranges::any_of(
        units_, [](const Record& unit) { return !unit.text("slurm_id").empty(); });
    for (const auto& [name, wanted] :
         {std::pair("user", users.size() > 1), std::pair("slurmid", shown)}) {
      const auto field = std::ranges::find(known_, name, &Field::name);
      if (by_default() && wanted && field != known_.end()) {
        fields.push_back(*field);
      }
    }
    const TableOptions look{.fitting_units = options_.human, .totals = options_.totals};
    if (options_.json) {
      return print(to_json(fields, units_, usage_), false);
    }
    if (options_.parsable) {
      return print(to_parsable(make_table(fields, units_, {}, look), !options_.no_header), false);
    }
    // As in the reference, a table begins with the IDs even if --format does not name them: the
    // column holds the word Summary and the number of jobs.
    const auto id = std::ranges::find(known_, "jobid", &Field::name);
    if (id != known_.end() && std::ranges::find(fields, id->name, &Field::name) == fields.end()) {
      fields.push_back(*id);
    }
    const Table table = make_table(in_table_order(std::move(fields), known_), units_, usage_, look);
    if (options_.html) {
      return print(to_html(table), false);
    }
    if (options_.csv) {
      return print(to_csv(table), false);
    }
    if (options_.markdown) {
      return print(to_markdown(table), false);
    }
    CEEMS_TRY(print(draw_box(table, shows_bold()), options_.pager));
    if (units_.empty() && ::isatty(STDERR_FILENO) == 1) {
      fmt::print(stderr, "{}\n", no_jobs_text(options_, question_, now_));
    }
    return {};
  }

  static Result<> print(std::string_view text, bool paged) {
    return show(text, paged) ? Result<>()
                             : fail(ErrorCode::kUnavailable, "cannot write to standard output");
  }

  [[nodiscard]] std::vector<std::string> series_names() const {
    std::vector<std::string> names;
    for (const SeriesQuery& query : config_.queries) {
      if (!query.instant) {
        names.push_back(query.help.empty() ? query.name
                                           : fmt::format("{}  {}", query.name, query.help));
      }
    }
    return names;
  }

  /// The queries that --ts.metrics names, or all.
  Result<std::vector<const SeriesQuery*>> chosen_queries() const {
    const std::vector<std::string> names = comma_parts(options_.series_names);
    for (const std::string& name : names) {
      const auto found = std::ranges::find(config_.queries, name, &SeriesQuery::name);
      if (found == config_.queries.end() || found->instant) {
        return usage_error(
            fmt::format("unknown time series '{}' in --ts.metrics; --helpformat "
                        "lists them",
                        printable(name)));
      }
    }
    std::vector<const SeriesQuery*> queries;
    for (const SeriesQuery& query : config_.queries) {
      const bool named = names.empty() || std::ranges::find(names, query.name) != names.end();
      if (!query.instant && named) {
        queries.push_back(&query);
      }
    }
    return queries;
  }

  [[nodiscard]] std::vector<DumpUnit> dump_units() const {
    std::vector<DumpUnit> units;
    for (const Record& record : units_) {
      DumpUnit unit{.uuid = std::string(record.text("uuid")),
                    .start_ms = record.whole("started_at_ts"),
                    .end_ms = record.whole("ended_at_ts")};
      unit.running = unit.end_ms == 0;
      unit.end_ms = unit.running ? now_ * 1000 : unit.end_ms;
      const bool has_times = unit.start_ms > 0 && unit.start_ms <= kMaxTimeMs && unit.end_ms > 0 &&
                             unit.end_ms <= kMaxTimeMs;
      if (!unit.uuid.empty() && has_times) {
        units.push_back(std::move(unit));
      }
    }
    return units;
  }

  Result<> dump() {
    CEEMS_TRY(queries, chosen_queries());
    if (queries.empty() || config_.tsdb_url.empty()) {
      fmt::print(stderr, "time series data not available\n");
      return {};
    }
    const std::vector<DumpUnit> units = dump_units();
    if (config_.max_units && std::cmp_greater(units.size(), *config_.max_units)) {
      return usage_error(
          fmt::format("time series of at most {} jobs can be fetched at a time, got {}",
                      *config_.max_units, units.size()));
    }
    if (config_.listed && question_.to - question_.from > kMaxDumpSeconds) {
      return usage_error("with --ts, --starttime and --endtime may be at most 7 days apart");
    }
    CEEMS_TRY(connect());
    DumpOptions dump_options{
        .directory = options_.series_directory,
        .format = options_.series_format == "csv" ? SeriesFormat::kCsv : SeriesFormat::kJsonLines,
        .lookback = scrape_interval(config_, *tsdb_),
        .variables = variables_,
        .describe = config_.listed};
    const bool terminal = ::isatty(STDERR_FILENO) == 1;
    if (terminal) {
      dump_options.progress = [](const std::string& what, double done) {
        fmt::print(stderr, "\r\x1b[K{:3.0f} %  {}", done * 100, what.substr(0, 60));
      };
    }
    const auto outcome = dump_series(*tsdb_, units, queries, dump_options, real_clock());
    if (terminal) {
      fmt::print(stderr, "\r\x1b[K");
    }
    if (!outcome) {
      return fail(outcome.error());
    }
    for (const std::string& line : outcome->failed) {
      fmt::print(stderr, "{}\n", line);
      log_.write(log::Level::kError, "query failed", {{"user", caller_.login}, {"err", line}});
    }
    failed_ = failed_ || !outcome->failed.empty();
    fmt::print(stderr, "time series data saved to directory {}{}\n", options_.series_directory,
               outcome->resumed ? " (continued)" : "");
    return failed_ ? Result<>(fail(ErrorCode::kUnavailable, "some time series are missing"))
                   : Result<>();
  }

  const Options& options_;
  const Caller& caller_;
  const bool dumps_;        // time series
  const bool lists_;        // for people
  const std::int64_t now_;  // epoch seconds
  Question question_;
  std::optional<RE2> filter_;
  Config config_;
  LogFile log_;
  std::vector<Field> known_;
  std::vector<Field> as_given_;  // the fields to show, in the order given
  std::vector<Record> units_;
  std::vector<Record> usage_;
  std::unique_ptr<tsdb::Client> tsdb_;
  tsdb::QueryVariables variables_;
  std::optional<Api> api_;
  bool failed_ = false;
};

}  // namespace

int run(const Options& options, const Caller& caller) {
  const auto done = Listing(options, caller).run();
  if (!done) {
    fmt::print(stderr, "cacct: error: {}\n", done.error().message);
    return 1;
  }
  return 0;
}

}  // namespace ceems::cacct
