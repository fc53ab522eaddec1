#include "lb/matcher_support.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "net/http.h"
#include "promql/text/literal.h"

namespace ceems::lb {
namespace {

namespace json = boost::json;
using std::chrono::hours;

constexpr std::string_view kSeries = "series";
struct Call {
  std::string_view method;
  std::string_view answer;  ///< field of the answer that lists what was found
};
constexpr std::array kCalls = {Call{"LabelNames", "names"},
                               Call{"LabelValues", "names"},
                               Call{"Series", "labelsSet"},
                               Call{"labels", "data"},
                               Call{"values", "data"},
                               Call{kSeries, "data"},
                               Call{MatcherSupport::kExtraFilters, "data"}};

constexpr std::string_view kNothing = R"({service_name="ceems_lb asks whether matchers count"})";
constexpr std::string_view kEverything = "{}";
constexpr std::string_view kValuesOfUnits = "label/uuid/values";
constexpr hours kHour{1};
constexpr hours kDay{24};
constexpr hours kMonth{30 * 24};
constexpr hours kAlways = hours::max();

constexpr std::chrono::seconds kAgeOfSupport{3600};
constexpr std::chrono::seconds kAgeOfFilters{60};  // a proxy between may get filters of its own
constexpr std::chrono::seconds kAgeOfRefusal{60};  // somebody may update the server
constexpr std::chrono::seconds kAgeOfDoubt{5};
constexpr std::chrono::minutes kRenewed{10};  // before it expires

bool is_tsdb(std::string_view method) {
  return method == "labels" || method == "values" || method == kSeries;
}

/// How long an answer counts.
std::chrono::seconds age_of(bool honours, bool ignores, std::string_view method) {
  if (honours) {
    return method == MatcherSupport::kExtraFilters ? kAgeOfFilters : kAgeOfSupport;
  }
  return ignores ? kAgeOfRefusal : kAgeOfDoubt;
}

const Call* find_call(std::string_view method) {
  const auto* const found = std::ranges::find(kCalls, method, &Call::method);
  return found == kCalls.end() ? nullptr : found;
}

}  // namespace

bool MatcherSupport::concerns(std::string_view method) {
  return find_call(method) != nullptr;
}

bool MatcherSupport::allows(std::string_view method) {
  if (find_call(method) == nullptr) {
    return true;
  }
  const MutexLock lock(mutex_);
  Known& known = known_[std::string(method)];
  if (clock_->now() < known.until) {
    return known.state == State::kHonours || known.state == State::kEmpty;
  }
  keep(method, find_out(method));
  return known.state == State::kHonours || known.state == State::kEmpty;
}

std::vector<std::string_view> MatcherSupport::methods(bool tsdb) {
  std::vector<std::string_view> names;
  for (const Call& call : kCalls) {
    if (is_tsdb(call.method) == tsdb && call.method != kExtraFilters) {
      names.push_back(call.method);
    }
  }
  return names;
}

void MatcherSupport::renew(std::string_view method) {
  {
    const MutexLock lock(mutex_);
    if (known_[std::string(method)].until - clock_->now() > kRenewed) {
      return;
    }
  }
  const State state = find_out(method);
  // What stays unknown is asked by the next request: a new server has profiles a moment later.
  if (state != State::kUnknown) {
    const MutexLock lock(mutex_);
    keep(method, state);
  }
}

void MatcherSupport::keep(std::string_view method, State state) {
  Known& known = known_[std::string(method)];
  if (state == State::kIgnores && known.state != state) {
    log::warn(method == kExtraFilters
                  ? "a server does not apply extra_filters[]: it gets requests for many units as "
                    "long queries, which take long and which it may refuse"
                  : "a server ignores matchers and would answer for all profiles or series: "
                    "update it",
              {{"method", method}});
  }
  known.state = state;
  known.until = clock_->now() + age_of(state == State::kHonours, state == State::kIgnores, method);
}

MatcherSupport::State MatcherSupport::find_out_filters() const {
  const auto start = std::chrono::floor<std::chrono::seconds>(clock_->now() - kHour);
  const std::string query = "query=" + net::url_encode("WITH () count(up)");
  const std::string labels = fmt::format("start={}&match[]={}", start.time_since_epoch().count(),
                                         net::url_encode(R"(WITH () {__name__!=""})"));
  const std::string nothing =
      fmt::format("&{}={}", net::url_encode(kExtraFilters), net::url_encode(kNothing));
  bool all = true;
  for (const auto& [method, call, field] :
       {std::tuple{"query", &query, "result"}, std::tuple{"labels", &labels, "data"}}) {
    const auto some = first_in(field, method, *call + nothing);
    if (!some || *some) {
      return some ? State::kIgnores : State::kUnknown;
    }
    const auto everything = first_in(field, method, *call);
    all = all && everything && *everything;
  }
  return all ? State::kHonours : State::kUnknown;
}

MatcherSupport::State MatcherSupport::find_out(std::string_view method) const {
  if (method == kExtraFilters) {
    return find_out_filters();
  }
  // A large span of time is expensive for the server, and a short one may have no profiles.
  std::vector<hours> spans{kHour, kDay, kMonth};
  if (is_tsdb(method)) {
    spans.push_back(kAlways);  // its last series may be older, and users may ask for them
  }
  for (const hours back : spans) {
    const auto nothing = first(method, kNothing, back);
    if (!nothing) {
      return State::kUnknown;
    }
    if (*nothing) {
      return State::kIgnores;
    }
    // Series are never listed without match[], but where there are any they have labels.
    const auto everything = first(method == kSeries ? "labels" : method, kEverything, back);
    if (!everything) {
      return State::kUnknown;
    }
    if (*everything) {
      return is_tsdb(method) ? find_out_by_name(method, back) : State::kHonours;
    }
  }
  return is_tsdb(method) ? State::kEmpty : State::kUnknown;
}

/// Some servers look at nothing but the name of the metric.
MatcherSupport::State MatcherSupport::find_out_by_name(std::string_view method, hours back) const {
  const auto found = first("values", kEverything, back);
  if (!found) {
    return State::kUnknown;
  }
  const std::string name = found->value_or("");
  if (!promql::is_plain_metric(name)) {
    return State::kHonours;
  }
  const std::string matcher = name + std::string(kNothing);
  for (const std::string_view call : {method, kValuesOfUnits}) {
    const auto nothing = first(call, matcher, back);
    if (!nothing) {
      return State::kUnknown;
    }
    if (*nothing) {
      return State::kIgnores;
    }
  }
  return State::kHonours;
}

Result<std::optional<std::string>> MatcherSupport::first(std::string_view method,
                                                         std::string_view matcher,
                                                         hours back) const {
  using std::chrono::floor;
  using std::chrono::milliseconds;
  const bool tsdb = is_tsdb(method) || method == kValuesOfUnits;
  const auto end = floor<milliseconds>(clock_->now()).time_since_epoch();
  const auto start = back == kAlways ? milliseconds(0) : end - milliseconds(back);
  std::string call;
  if (tsdb) {
    if (back != kAlways) {
      call = fmt::format("start={}&end={}", floor<std::chrono::seconds>(start).count(),
                         floor<std::chrono::seconds>(end).count());
    }
    if (matcher != kEverything) {
      call += "&match[]=" + net::url_encode(matcher);
    }
  } else {
    JsonWriter writer(call);
    writer.begin_object().key("matchers").begin_array().value(matcher).end_array();
    if (method == "LabelValues") {
      writer.member("name", "service_name");
    }
    writer.member("start", std::to_string(start.count()));
    writer.member("end", std::to_string(end.count())).end_object();
  }
  return first_in(tsdb ? "data" : find_call(method)->answer, method, call);
}

Result<std::optional<std::string>> MatcherSupport::first_in(std::string_view field,
                                                            std::string_view method,
                                                            std::string_view call) const {
  CEEMS_TRY(answer, ask_(method, call));
  boost::system::error_code error;
  const json::value document = json::parse(answer, error);
  const auto* object = error ? nullptr : document.if_object();
  if (object != nullptr && method == "query") {
    const json::value* const data = object->if_contains("data");
    object = data == nullptr ? nullptr : data->if_object();
  }
  if (object == nullptr) {
    return fail(ErrorCode::kUnavailable, "the answer is not a JSON object");
  }
  const json::value* const list = object->if_contains(field);
  if (list == nullptr || list->is_null()) {
    return std::nullopt;
  }
  const json::array* const entries = list->if_array();
  if (entries != nullptr && entries->empty()) {
    return std::nullopt;
  }
  const json::string* const text = entries == nullptr ? nullptr : entries->front().if_string();
  return text == nullptr ? std::string() : std::string(*text);
}

}  // namespace ceems::lb
