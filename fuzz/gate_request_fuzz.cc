// Requests to Prometheus and Pyroscope: the request that the gate passes on is read as the same
// request, with the same units and the same text.
// Input: "GET", "POST", "proto" or "json", then a line with the target, then the body.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/strings.h"
#include "gate/profile_request.h"
#include "gate/tsdb_request.h"

namespace {

namespace gate = ceems::gate;

/// Returns rules that outlive the requests that are read with them.
template <typename Rules>
const Rules& wider(const Rules& rules) {
  static const Rules kWider = [&rules] {
    Rules more = rules;
    more.max_body_bytes <<= 3U;
    more.selection.max_steps <<= 8U;
    more.selection.language.max_bytes <<= 3U;
    more.selection.language.max_patterns <<= 3U;
    return more;
  }();
  return kWider;
}

/// The gate must accept what it passes on. That may be longer than what it received, because
/// confining adds patterns.
template <typename Request, typename Rules>
Request read_again(const gate::Forward& forward, const Rules& rules) {
  const std::string target =
      forward.query.empty() ? forward.path : forward.path + "?" + forward.query;
  auto again = Request::read(gate::ParsedRequest({.method = forward.method,
                                                  .target = target,
                                                  .content_type = forward.content_type,
                                                  .body = forward.body}),
                             wider(rules));
  CEEMS_CHECK(again.has_value());
  return *std::move(again);
}

template <typename Request, typename Rules>
void check(const gate::ParsedRequest& received, const Rules& rules) {
  auto request = Request::read(received, rules);
  if (!request) {
    CEEMS_CHECK(request.error().status >= 400 && request.error().status < 500);
    CEEMS_CHECK(!request.error().reason.empty());
    return;
  }
  if (request->selection().is_open() && !request->selection().confine({"own", "a.b"})) {
    return;
  }
  const gate::Forward forward = request->forward();
  auto again = read_again<Request>(forward, rules);
  CEEMS_CHECK(!again.selection().is_open());
  for (const std::string& unit : request->selection().units()) {
    CEEMS_CHECK(again.selection().units().contains(unit));
  }
  CEEMS_CHECK(again.selection().cluster() == request->selection().cluster());
  const gate::Forward same = again.forward();
  CEEMS_CHECK(same.path == forward.path && same.query == forward.query &&
              same.body == forward.body);
}

/// The cache of checked queries, empty or not, must not change any result.
void check_memory(const gate::ParsedRequest& received, const gate::TsdbRules& rules) {
  static gate::CheckedQueries queries(100, 4096);
  gate::TsdbRules remembering = rules;
  remembering.checked = &queries;
  auto plain = gate::TsdbRequest::read(received, rules);
  for (int i = 0; i < 2; ++i) {
    auto request = gate::TsdbRequest::read(received, remembering);
    CEEMS_CHECK(request.has_value() == plain.has_value());
    if (!request) {
      CEEMS_CHECK(request.error().reason == plain.error().reason);
      continue;
    }
    CEEMS_CHECK(request->selection().units() == plain->selection().units());
    CEEMS_CHECK(request->selection().cluster() == plain->selection().cluster());
    CEEMS_CHECK(request->selection().is_open() == plain->selection().is_open());
    const gate::Forward forward = request->forward();
    const gate::Forward wanted = plain->forward();
    CEEMS_CHECK(forward.query == wanted.query && forward.body == wanted.body);
  }
}

/// A request that does not read other people's units must be the same request when it is read
/// again.
template <typename Request, typename Rules>
void check_apart(const gate::ParsedRequest& received, const Rules& rules) {
  static const gate::SharedIds kIds = {
      {"own",
       {.own = {{72'000'000, 75'600'000}, {108'000'000, gate::kFarTime}},
        .others = {{36'000'000, 43'200'000}, {90'000'000, 93'600'000}}}}};
  constexpr std::int64_t kNow = 120'000'000;
  auto request = Request::read(received, rules);
  if (!request || request->selection().is_open()) {
    return;
  }
  if (const auto kept = request->restrict_times(kIds, kNow); !kept) {
    CEEMS_CHECK(kept.error().status == 400 || kept.error().status == 403);
    return;
  }
  const gate::Forward forward = request->forward();
  auto again = read_again<Request>(forward, rules);
  CEEMS_CHECK(again.restrict_times(kIds, kNow).has_value());
  const gate::Forward same = again.forward();
  CEEMS_CHECK(same.query == forward.query && same.body == forward.body);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the fuzzer's bytes as text
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view kind = ceems::take_until(rest, '\n');
  const std::string_view target = ceems::take_until(rest, '\n');
  static const gate::TsdbRules kTsdb;
  static const gate::ProfileRules kProfiles;
  if (kind == "proto" || kind == "json") {
    const std::string type = "application/" + std::string(kind);
    const gate::ParsedRequest received(
        {.method = "POST", .target = target, .content_type = type, .body = rest});
    check<gate::ProfileRequest>(received, kProfiles);
    check_apart<gate::ProfileRequest>(received, kProfiles);
  } else {
    const gate::ParsedRequest received(
        {.method = kind, .target = target, .content_type = gate::kFormType, .body = rest});
    check<gate::TsdbRequest>(received, kTsdb);
    check_memory(received, kTsdb);
    check_apart<gate::TsdbRequest>(received, kTsdb);
  }
  return 0;
}
