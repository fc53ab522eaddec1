#include "lb/matcher_support.h"

#include <algorithm>
#include <array>
#include <utility>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "net/http.h"

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
constexpr hours kHour{1};
constexpr hours kDay{24};
constexpr hours kMonth{30 * 24};

constexpr std::chrono::minutes kAgeOfSupport{60};
constexpr std::chrono::minutes kAgeOfRefusal{1};  // somebody may update the server
constexpr std::chrono::seconds kAgeOfDoubt{5};

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
  known.state = find_out(method);
  switch (known.state) {
    case State::kHonours:
      known.until = clock_->now() + kAgeOfSupport;
      break;
    case State::kIgnores:
      known.until = clock_->now() + kAgeOfRefusal;
      log::warn("a server ignores matchers and would answer for all profiles or series: update it",
                {{"method", method}});
      break;
    case State::kEmpty:
    case State::kUnknown:
      known.until = clock_->now() + kAgeOfDoubt;
      break;
  }
  return known.state == State::kHonours || known.state == State::kEmpty;
}

MatcherSupport::State MatcherSupport::find_out(std::string_view method) const {
  // A large span of time is expensive for the server, and a short one may have no profiles.
  for (const hours back : {kHour, kDay, kMonth}) {
    const auto nothing = lists(method, kNothing, back);
    if (!nothing) {
      return State::kUnknown;
    }
    if (*nothing) {
      return State::kIgnores;
    }
    const auto everything = lists(method, kEverything, back);
    if (!everything) {
      return State::kUnknown;
    }
    if (*everything) {
      return State::kHonours;
    }
  }
  return is_tsdb(method) ? State::kEmpty : State::kUnknown;
}

Result<bool> MatcherSupport::lists(std::string_view method,
                                   std::string_view matcher,
                                   hours back) const {
  using std::chrono::floor;
  using std::chrono::milliseconds;
  const auto end = floor<milliseconds>(clock_->now()).time_since_epoch();
  const auto start = end - milliseconds(back);
  std::string call;
  if (is_tsdb(method)) {
    call = fmt::format("start={}&end={}", floor<std::chrono::seconds>(start).count(),
                       floor<std::chrono::seconds>(end).count());
    if (matcher == kNothing) {
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
  const json::value* const list = object->if_contains(find_call(method)->answer);
  if (list == nullptr || list->is_null()) {
    return false;
  }
  return !list->is_array() || !list->get_array().empty();
}

}  // namespace ceems::lb
