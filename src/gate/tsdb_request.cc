#include "gate/tsdb_request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/strings.h"
#include "base/time/rfc3339.h"
#include "gate/unit_filters.h"
#include "net/http.h"
#include "promql/parser.h"
#include "promql/patterns.h"
#include "promql/printer.h"
#include "promql/text/characters.h"
#include "promql/text/literal.h"

namespace ceems::gate {
namespace {

constexpr std::size_t kMaxKeptUnits = 50;  // of a query that is cached
/// Begins a text that changes nothing in MetricsQL and that no other language allows.
constexpr std::string_view kOnlyMetricsql = "WITH () ";

/// The parameter that contains the selectors of an endpoint.
enum class Source : std::uint8_t { kNothing, kQuery, kMatches };

struct Endpoint {
  std::string_view path;  // after /api/v1/; "label/*/values" stands for every label
  Source source;
  std::span<const std::string_view> parameters;
  bool in_body = false;  ///< all servers accept the parameters in the body of a POST request
};

constexpr std::array<std::string_view, 6> kInstantParameters = {"query", "time",  "timeout",
                                                                "limit", "stats", "lookback_delta"};
constexpr std::array<std::string_view, 8> kRangeParameters = {
    "query", "start", "end", "step", "timeout", "limit", "stats", "lookback_delta"};
constexpr std::array<std::string_view, 3> kExemplarsParameters = {"query", "start", "end"};
constexpr std::array<std::string_view, 4> kMetadataParameters = {"match[]", "start", "end",
                                                                 "limit"};
constexpr std::array<std::string_view, 1> kFormatParameters = {"query"};
constexpr std::array<std::string_view, 3> kHelpParameters = {"metric", "limit", "limit_per_metric"};

constexpr std::array kEndpoints = {
    Endpoint{"query", Source::kQuery, kInstantParameters, true},
    Endpoint{"query_range", Source::kQuery, kRangeParameters, true},
    Endpoint{"query_exemplars", Source::kQuery, kExemplarsParameters, true},
    Endpoint{"series", Source::kMatches, kMetadataParameters, true},
    Endpoint{"labels", Source::kMatches, kMetadataParameters, true},
    Endpoint{"label/*/values", Source::kMatches, kMetadataParameters},
    // These read no series; query editors need them.
    Endpoint{"format_query", Source::kNothing, kFormatParameters},
    Endpoint{"status/buildinfo", Source::kNothing, {}},
    Endpoint{"metadata", Source::kNothing, kHelpParameters},
};

/// A parameter that only one kind of server has.
struct OwnParameter {
  TsdbServer server;
  std::string_view name;
  std::span<const std::string_view> paths;  // of endpoints
  bool is_time = false;                     // otherwise it is true or false
};
constexpr std::string_view kMaxSourceResolution = "max_source_resolution";
constexpr std::array<std::string_view, 2> kEvaluating = {"query", "query_range"};
constexpr std::array<std::string_view, 3> kReturningSeries = {"query", "query_range", "series"};
constexpr std::array<std::string_view, 5> kReading = {"query", "query_range", "series", "labels",
                                                      "label/*/values"};
/// https://thanos.io/tip/components/query.md/ and
/// https://docs.victoriametrics.com/#prometheus-querying-api-enhancements. The other parameters of
/// these servers choose stores, tenants, labels of replicas or further filters, or show how a query
/// was executed.
constexpr std::array kOwnParameters = {
    OwnParameter{TsdbServer::kThanos, "dedup", kReturningSeries},
    OwnParameter{TsdbServer::kThanos, "partial_response", kReading},
    OwnParameter{TsdbServer::kThanos, kMaxSourceResolution, kEvaluating, true},
    OwnParameter{TsdbServer::kVictoriaMetrics, "nocache", kEvaluating},
};

bool is_own_parameter(std::string_view name) {
  return std::ranges::find(kOwnParameters, name, &OwnParameter::name) != kOwnParameters.end();
}

bool is_truth(std::string_view text) {
  constexpr std::array<std::string_view, 12> kWords = {"1", "t", "T", "true",  "TRUE",  "True",
                                                       "0", "f", "F", "false", "FALSE", "False"};
  return std::ranges::find(kWords, text) != kWords.end();
}

bool is_label_values(std::string_view path) {
  constexpr std::string_view kBegin = "label/";
  constexpr std::string_view kEnd = "/values";
  if (!path.starts_with(kBegin) || !path.ends_with(kEnd) ||
      path.size() <= kBegin.size() + kEnd.size()) {
    return false;
  }
  path.remove_prefix(kBegin.size());
  path.remove_suffix(kEnd.size());
  constexpr auto kInName = promql::ByteSet::letters_digits_and(".");
  return kInName.contains_all(path) && !is_digit(path.front()) && path.front() != '.';
}

const Endpoint* find_endpoint(std::string_view path, const TsdbRules& rules) {
  for (const std::string& prefix : rules.prefixes) {
    const std::string begin = prefix + "/api/v1/";
    if (!path.starts_with(begin)) {
      continue;
    }
    const std::string_view name = path.substr(begin.size());
    for (const Endpoint& endpoint : kEndpoints) {
      if (endpoint.path == name || (endpoint.path == "label/*/values" && is_label_values(name))) {
        return endpoint.source == Source::kNothing && !rules.editors ? nullptr : &endpoint;
      }
    }
  }
  return nullptr;
}

/// The endpoint of a request, if path and method may pass.
Checked<const Endpoint*> route_of(const ParsedRequest& received, const TsdbRules& rules) {
  const auto& path = received.path();
  if (!path) {
    return std::unexpected(path.error());
  }
  const Endpoint* const endpoint = find_endpoint(*path, rules);
  if (endpoint == nullptr) {
    return std::unexpected(forbidden_resource("path"));
  }
  const std::string_view method = received.raw().method;
  if (method != "GET" && method != "HEAD" && method != "POST") {
    return std::unexpected(wrong_method());
  }
  return endpoint;
}

/// The parameters of the HTTP API of Prometheus that say when a query is evaluated
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview).
enum class TimeForm : std::uint8_t {
  kInstant,  ///< time, by default now
  kRange,    ///< start, end, step
  kBounds,   ///< start, end, by default all times
};

struct RequestTimes {
  Evaluation times;
  std::int64_t lookback_ms = 0;  ///< of instant selectors, as sent to the server
  /// How far before a time of evaluation the server may read in fact. It may ignore the parameter,
  /// use the step instead, and start up to one step earlier.
  std::int64_t max_lookback_ms = 0;
  /// How much later than requested the server may evaluate: one step of a range.
  std::int64_t moved_ms = 0;
};

/// The default of Prometheus, which also stands for 0. A server may have another default, so the
/// request always gives the value.
constexpr std::int64_t kLookbackMs = 300'000;
constexpr double kMsPerSecond = 1000;

std::optional<std::int64_t> ms_of_seconds(std::string_view text) {
  const auto seconds = parse_double(text);
  if (!seconds || !std::isfinite(*seconds) ||
      std::abs(*seconds) * kMsPerSecond > static_cast<double>(kFarTime)) {
    return std::nullopt;
  }
  return std::llround(*seconds * kMsPerSecond);
}

/// Whether this is a time in seconds that servers round to 0, which means their default to them.
bool is_below_ms(std::string_view text) {
  const auto seconds = parse_double(text);
  return seconds && *seconds > 0 && *seconds * kMsPerSecond < 1;
}

std::optional<std::int64_t> time_of(std::string_view text) {
  const auto ms = ms_of_seconds(text);
  return ms ? ms : parse_rfc3339_ms(text);
}

std::optional<std::int64_t> duration_of(std::string_view text) {
  const auto ms = ms_of_seconds(text);
  return ms ? ms : promql::parse_duration_ms(text);
}

const std::string* find(const Fields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
  return found == fields.end() ? nullptr : &found->second;
}

void write_text(Fields& fields, std::string_view name, std::string text) {
  const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
  if (found != fields.end()) {
    found->second = std::move(text);
  } else {
    fields.emplace_back(name, std::move(text));
  }
}

void write(Fields& fields, std::string_view name, std::int64_t ms) {
  write_text(fields, name, fmt::format("{:.3f}", static_cast<double>(ms) / kMsPerSecond));
}

/// Refuses a missing or invalid time and a step that is not positive.
Checked<RequestTimes> read_times(const Fields& fields, TimeForm form, std::int64_t now_ms) {
  std::optional<Refusal> refusal;
  const auto read = [&](std::string_view name, const auto& parse,
                        std::optional<std::int64_t> otherwise) -> std::int64_t {
    const std::string* const text = find(fields, name);
    const auto value = text == nullptr || text->empty() ? otherwise : parse(*text);
    if (!value && !refusal) {
      refusal = bad_data(fmt::format("invalid parameter \"{}\": cannot parse it", name), "times");
    }
    return value.value_or(0);
  };
  RequestTimes requested;
  Evaluation& times = requested.times;
  if (form == TimeForm::kInstant) {
    times.start_ms = read("time", time_of, now_ms);
    times.end_ms = times.start_ms;
  } else {
    const bool bounds = form == TimeForm::kBounds;
    times.start_ms = read("start", time_of, bounds ? std::optional(-kFarTime) : std::nullopt);
    times.end_ms = read("end", time_of, bounds ? std::optional(kFarTime) : std::nullopt);
  }
  if (form == TimeForm::kRange) {
    times.step_ms = read("step", duration_of, std::nullopt);
  }
  if (form != TimeForm::kBounds) {
    requested.lookback_ms = read("lookback_delta", duration_of, kLookbackMs);
    requested.lookback_ms = requested.lookback_ms == 0 ? kLookbackMs : requested.lookback_ms;
    requested.max_lookback_ms = std::max(requested.lookback_ms, kLookbackMs);
  }
  if (form == TimeForm::kRange && times.step_ms <= kFarTime) {
    // VictoriaMetrics looks back by one step and moves start and end to multiples of it. Mimir and
    // Thanos may move them as well.
    requested.moved_ms = std::max<std::int64_t>(times.step_ms, 0);
    requested.max_lookback_ms = std::min(
        std::max(requested.max_lookback_ms, requested.moved_ms) + requested.moved_ms, kFarTime);
  }
  if (!refusal && (times.step_ms <= 0 || times.step_ms > kFarTime || requested.lookback_ms < 0 ||
                   requested.lookback_ms > kFarTime || times.end_ms < times.start_ms)) {
    refusal = bad_data("invalid parameters \"start\", \"end\", \"step\"", "times");
  }
  if (refusal) {
    return std::unexpected(std::move(*refusal));
  }
  return requested;
}

/// Writes start and end, or the time, and the look-back into `fields` in a form that every server
/// reads the same way. Unbounded times are left out.
void write_times(Fields& fields, TimeForm form, const RequestTimes& requested) {
  const Evaluation& times = requested.times;
  if (form != TimeForm::kBounds) {
    write(fields, "lookback_delta", requested.lookback_ms);
  }
  if (form == TimeForm::kInstant) {
    write(fields, "time", times.start_ms);
    return;
  }
  if (times.start_ms > -kFarTime) {
    write(fields, "start", times.start_ms);
  }
  if (times.end_ms < kFarTime) {
    write(fields, "end", times.end_ms);
  }
}

}  // namespace

struct TsdbRequest::Parts {
  Parts(const SelectionRules& rules, Budget budget, TsdbServer kind)
      : work(rules.max_steps),
        language(within(rules.language, budget, work)),
        selection(rules, budget, language.patterns) {
    language.metricsql = kind == TsdbServer::kVictoriaMetrics;
  }

  std::string method;
  std::string path;
  const Endpoint* endpoint = nullptr;
  TsdbServer server = TsdbServer::kPrometheus;
  Fields fields;
  Fields own;                   ///< parameters of single kinds of servers, as given
  std::size_t query_field = 0;  ///< of `query`
  promql::ExprPtr query;
  std::shared_ptr<const CheckedQuery> known;  ///< of the query
  /// One per match[], with its index in `fields`, in their order. It is a deque because the
  /// selection points into it.
  std::deque<std::pair<std::size_t, promql::VectorSelector>> matches;
  promql::WorkBudget work;
  promql::ParseOptions language;
  Selection selection;

  static promql::ParseOptions within(promql::ParseOptions language,
                                     Budget budget,
                                     promql::WorkBudget& work) {
    language.patterns.work = &work;
    language.patterns.compile = budget == Budget::kFull;
    language.patterns.check = false;  // patterns are compiled when all selectors have passed
    return language;
  }

  Checked<bool> read_fields(const ParsedRequest& received, const TsdbRules& rules);
  Checked<bool> keep_known(const Fields& given);
  [[nodiscard]] Checked<bool> check_own(const OwnParameter& parameter) const;
  Checked<bool> read_query(const TsdbRules& rules);
  Checked<bool> read_matches();
  [[nodiscard]] TimeForm form() const;
  /// What the query reads, as far as a server may move its times.
  [[nodiscard]] promql::Reach reach_of(const RequestTimes& requested) const;
  [[nodiscard]] Checked<bool> checked(const std::optional<promql::SyntaxError>& error,
                                      std::string_view parameter) const;
  /// `begin` stands before the texts of queries and of match[].
  void append_form(std::string& form, std::string_view begin) const;
};

TsdbRequest::TsdbRequest(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TsdbRequest::TsdbRequest(TsdbRequest&&) noexcept = default;
TsdbRequest& TsdbRequest::operator=(TsdbRequest&&) noexcept = default;
TsdbRequest::~TsdbRequest() = default;

Checked<bool> TsdbRequest::Parts::read_fields(const ParsedRequest& received,
                                              const TsdbRules& rules) {
  const RawRequest& raw = received.raw();
  const auto& given = received.parameters();
  if (!given) {
    return std::unexpected(given.error());
  }
  if (method == "POST") {
    if (raw.body.size() > rules.max_body_bytes) {
      return std::unexpected(large_body());
    }
    if (!raw.content_encoding.empty() && !same_in_any_case(raw.content_encoding, "identity")) {
      return std::unexpected(wrong_media("request bodies must not be compressed"));
    }
    if (!raw.body.empty() && !same_in_any_case(media_type(raw.content_type), kFormType)) {
      return std::unexpected(wrong_media(fmt::format("request bodies must be {}", kFormType)));
    }
    const auto& posted = received.posted();
    if (!posted) {
      return std::unexpected(posted.error());
    }
    if (auto kept = keep_known(*posted); !kept) {  // Prometheus reads the body before the URL
      return kept;
    }
  }
  return keep_known(*given);
}

Checked<bool> TsdbRequest::Parts::keep_known(const Fields& given) {
  fields.reserve(fields.size() + given.size());
  for (const auto& [name, value] : given) {
    if (std::ranges::find(endpoint->parameters, name) == endpoint->parameters.end()) {
      if (is_own_parameter(name)) {
        own.emplace_back(name, value);
      }
      continue;  // not passed on
    }
    const bool repeated =
        std::ranges::any_of(fields, [&](const auto& field) { return field.first == name; });
    if (repeated && name != "match[]") {
      return std::unexpected(
          bad_data(fmt::format("parameter '{}' is given more than once", name), "parameters"));
    }
    if (name == "query") {
      query_field = fields.size();
    }
    fields.emplace_back(name, name == "lookback_delta" && is_below_ms(value) ? "0.001" : value);
  }
  return true;
}

Checked<bool> TsdbRequest::Parts::read_query(const TsdbRules& rules) {
  if (fields.empty() || fields[query_field].first != "query") {
    return std::unexpected(bad_data("invalid parameter \"query\": no query", "parameters"));
  }
  std::string& text = fields[query_field].second;
  if (rules.checked != nullptr) {
    if (auto found = rules.checked->find(text)) {
      known = std::move(*found);
      selection.add_known(known->units, known->cluster);
      return true;
    }
  }
  auto parsed = promql::parse(text, language);
  if (!parsed) {
    return checked(parsed.error(), "query");
  }
  query = std::move(*parsed);
  auto added = selection.add(*query);
  if (added) {
    added = checked(promql::check_patterns(text, *query, language.patterns), "query");
  }
  if (added && rules.checked != nullptr && !selection.is_open() &&
      selection.units().size() <= kMaxKeptUnits) {
    known = std::make_shared<const CheckedQuery>(net::url_encode(promql::print(*query)),
                                                 selection.units(), selection.cluster(),
                                                 promql::reach_of(*query));
    rules.checked->store(text, known);
  }
  return added;
}

Checked<bool> TsdbRequest::Parts::read_matches() {
  std::size_t length = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].first != "match[]") {
      continue;
    }
    // Together they must not be longer than a query: each of their patterns is compiled.
    length += promql::size_without_lists(fields[i].second);
    if (length > language.max_bytes) {
      return std::unexpected(bad_data("parameters \"match[]\" are too long", "size"));
    }
    auto parsed = promql::parse_selector(fields[i].second, language);
    if (!parsed) {
      return checked(parsed.error(), "match[]");
    }
    matches.emplace_back(i, std::move(*parsed));
  }
  if (matches.empty()) {
    // All series: an open selector, which confine() can limit.
    matches.emplace_back(fields.size(), promql::VectorSelector{});
    fields.emplace_back("match[]", "");
  }
  for (auto& [place, selector] : matches) {
    CEEMS_TRY(selection.add(selector));
  }
  for (const auto& [place, selector] : matches) {
    const std::string& text = fields[place].second;
    CEEMS_TRY(checked(promql::check_patterns(text, selector, language.patterns, text.empty()),
                      "match[]"));
  }
  return true;
}

Checked<bool> TsdbRequest::Parts::checked(const std::optional<promql::SyntaxError>& error,
                                          std::string_view parameter) const {
  if (!error) {
    return true;
  }
  if (work.exhausted()) {
    return std::unexpected(too_much_work());
  }
  return std::unexpected(
      bad_data(fmt::format("invalid parameter \"{}\": {}", parameter, error->text()), "syntax"));
}

void TsdbRequest::Parts::append_form(std::string& form, std::string_view begin) const {
  auto match = matches.begin();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    append_name(form, fields[i].first);
    if (known && i == query_field) {
      form += known->encoded;
    } else if (query && i == query_field) {
      net::append_url_encoded(form, begin);
      net::append_url_encoded(form, promql::print(*query));
    } else if (match != matches.end() && i == match->first) {
      net::append_url_encoded(form, begin);
      net::append_url_encoded(form, promql::print(match->second));
      ++match;
    } else {
      net::append_url_encoded(form, fields[i].second);
    }
  }
}

bool TsdbRequest::accepts_route(const ParsedRequest& received, const TsdbRules& rules) {
  return route_of(received, rules).has_value();
}

Checked<TsdbRequest> TsdbRequest::read(const ParsedRequest& received,
                                       const TsdbRules& rules,
                                       Budget budget,
                                       TsdbServer server) {
  CEEMS_TRY(endpoint, route_of(received, rules));
  auto parts = std::make_unique<Parts>(rules.selection, budget, server);
  parts->method = received.raw().method;
  parts->path = *received.path();
  parts->endpoint = endpoint;
  auto read = parts->read_fields(received, rules);
  if (read && parts->endpoint->source == Source::kQuery) {
    read = parts->read_query(rules);
  } else if (read && parts->endpoint->source == Source::kMatches) {
    read = parts->read_matches();
  }
  if (!read) {
    return std::unexpected(std::move(read).error());
  }
  return TsdbRequest(std::move(parts));
}

TimeForm TsdbRequest::Parts::form() const {
  const std::string_view name = endpoint->path;
  return name == "query"         ? TimeForm::kInstant
         : name == "query_range" ? TimeForm::kRange
                                 : TimeForm::kBounds;
}

promql::Reach TsdbRequest::Parts::reach_of(const RequestTimes& requested) const {
  if (form() == TimeForm::kBounds) {
    return {.around = promql::TimeSpan{}};  // without evaluation, everything from start to end
  }
  promql::Reach reach = known ? known->reach : promql::reach_of(*query);
  const std::int64_t ahead = reach.looks_ahead ? requested.max_lookback_ms : 0;
  for (auto* const span : {&reach.around, &reach.at_start, &reach.at_end, &reach.fixed}) {
    if (*span) {
      (*span)->to_ms = promql::add_times((*span)->to_ms, requested.moved_ms + ahead);
    }
  }
  return reach;
}

promql::TimeSpan TsdbRequest::times_read(std::int64_t now_ms) const {
  const auto requested = read_times(parts_->fields, parts_->form(), now_ms);
  if (parts_->endpoint->source == Source::kNothing || !requested) {
    return kAllTimes;
  }
  const promql::Reach reach = parts_->reach_of(*requested);
  promql::TimeSpan read{.from_ms = kFarTime, .to_ms = -kFarTime};
  const auto add = [&](const std::optional<promql::TimeSpan>& span, std::int64_t from,
                       std::int64_t to) {
    if (span) {
      const std::int64_t begin =
          promql::add_times(promql::add_times(from, span->from_ms), -requested->max_lookback_ms);
      read.from_ms = std::min(read.from_ms, begin);
      read.to_ms = std::max(read.to_ms, promql::add_times(to, span->to_ms));
    }
  };
  const Evaluation& times = requested->times;
  add(reach.around, times.start_ms, times.end_ms);
  add(reach.at_start, times.start_ms, times.start_ms);
  add(reach.at_end, times.end_ms, times.end_ms);
  add(reach.fixed, 0, 0);
  return read.from_ms <= read.to_ms ? read : kAllTimes;
}

Checked<bool> TsdbRequest::restrict_times(const SharedIds& ids, std::int64_t now_ms) {
  Parts& parts = *parts_;
  if (parts.endpoint->source == Source::kNothing) {
    return true;
  }
  const TimeForm form = parts.form();
  CEEMS_TRY(requested, read_times(parts.fields, form, now_ms));
  const promql::Reach reach = parts.reach_of(requested);
  const auto left = narrowed(requested.times, reach, requested.max_lookback_ms, ids);
  if (!left) {
    return std::unexpected(shared_id(ids.begin()->first));
  }
  requested.times = *left;
  write_times(parts.fields, form, requested);
  if (parts.server == TsdbServer::kThanos && form != TimeForm::kBounds) {
    // A sample of lower resolution stands for minutes or hours, in which the ID may have had
    // others' units.
    write_text(parts.fields, kMaxSourceResolution, "0s");
  }
  return true;
}

Checked<bool> TsdbRequest::Parts::check_own(const OwnParameter& parameter) const {
  if (std::ranges::count(own, parameter.name, &Fields::value_type::first) > 1) {
    return std::unexpected(bad_data(
        fmt::format("parameter '{}' is given more than once", parameter.name), "parameters"));
  }
  const std::string* const value = find(own, parameter.name);
  const bool good = value == nullptr ||
                    (parameter.is_time ? *value == "auto" || duration_of(*value).value_or(-1) >= 0
                                       : is_truth(*value));
  if (!good) {
    return std::unexpected(bad_data(
        fmt::format("invalid parameter \"{}\": cannot parse it", parameter.name), "parameters"));
  }
  return true;
}

Checked<bool> TsdbRequest::keep_parameters_of(TsdbServer server) {
  Parts& parts = *parts_;
  parts.server = server;
  for (const OwnParameter& parameter : kOwnParameters) {
    if (parameter.server != server ||
        std::ranges::find(parameter.paths, parts.endpoint->path) == parameter.paths.end()) {
      continue;
    }
    CEEMS_TRY(parts.check_own(parameter));
    if (const std::string* const value = find(parts.own, parameter.name)) {
      parts.fields.emplace_back(parameter.name, *value);
    }
  }
  return true;
}

Selection& TsdbRequest::selection() {
  return parts_->selection;
}

Forward TsdbRequest::forward() const {
  std::string form;
  parts_->append_form(form, {});
  return forward_form(std::move(form));
}

Forward TsdbRequest::forward_filtered(const std::set<std::string, std::less<>>& units) const {
  std::string form;
  parts_->append_form(form, kOnlyMetricsql);
  append_unit_filters(form, parts_->selection, units);
  return forward_form(std::move(form));
}

Forward TsdbRequest::forward_form(std::string form) const {
  constexpr std::size_t kMaxQueryBytes = 6144;
  Forward forward{.method = parts_->method, .path = write_path(parts_->path)};
  if (forward.method == "GET" && form.size() > kMaxQueryBytes && parts_->endpoint->in_body) {
    forward.method = "POST";
  }
  if (forward.method == "POST") {
    forward.content_type = kFormType;
    forward.body = std::move(form);
  } else {
    forward.query = std::move(form);
  }
  return forward;
}

}  // namespace ceems::gate
