#include "lb/matcher_support.h"

#include <algorithm>
#include <array>
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

struct Call {
  std::string_view method;
  std::string_view answer;  ///< field of the answer that lists what was found
};
constexpr std::array kCalls = {Call{"LabelNames", "names"}, Call{"LabelValues", "names"},
                               Call{"Series", "labelsSet"}, Call{"labels", "data"},
                               Call{"values", "data"}};

constexpr std::string_view kNothing = R"({service_name="ceems_lb asks whether matchers count"})";
constexpr std::string_view kEverything = "{}";
constexpr std::string_view kValuesOfUnits = "label/uuid/values";
constexpr hours kHour{1};
constexpr hours kDay{24};
constexpr hours kMonth{30 * 24};
constexpr hours kAlways = hours::max();

constexpr std::chrono::seconds kAgeOfSupport{3600};
constexpr std::chrono::seconds kAgeOfRefusal{60};  // somebody may update the server
constexpr std::chrono::seconds kAgeOfDoubt{5};
constexpr std::chrono::minutes kRenewed{10};  // before it expires

bool is_tsdb(std::string_view method) {
  return method == "labels" || method == "values";
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
    if (is_tsdb(call.method) == tsdb) {
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
    log::warn("a server ignores matchers and would answer for all profiles or series: update it",
              {{"method", method}});
  }
  known.state = state;
  known.until = clock_->now() + (state == State::kHonours   ? kAgeOfSupport
                                 : state == State::kIgnores ? kAgeOfRefusal
                                                            : kAgeOfDoubt);
}

MatcherSupport::State MatcherSupport::find_out(std::string_view method) const {
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
    const auto everything = first(method, kEverything, back);
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
  CEEMS_TRY(answer, ask_(method, call));
  boost::system::error_code error;
  const json::value document = json::parse(answer, error);
  const auto* const object = error ? nullptr : document.if_object();
  if (object == nullptr) {
    return fail(ErrorCode::kUnavailable, "the answer is not a JSON object");
  }
  const json::value* const list = object->if_contains(tsdb ? "data" : find_call(method)->answer);
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
