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
