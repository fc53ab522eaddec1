#include "gate/profile_calls.h"

#include <algorithm>
#include <array>

namespace ceems::gate {
namespace {

constexpr std::string_view kService = "/querier.v1.QuerierService/";

constexpr ProfileCall selecting(std::string_view method, std::uint32_t start = 3) {
  ProfileCall call = kSelectingCall;
  call.method = method;
  call.start = start;
  return call;
}

/// A call that returns one point per step and therefore reads from one step before its start.
constexpr ProfileCall stepping(std::string_view method, std::uint32_t step) {
  ProfileCall call = selecting(method);
  call.step = step;
  return call;
}

constexpr ProfileCall matching(std::string_view method, std::uint32_t number, std::uint32_t start) {
  return {.method = method,
          .number = number,
          .start = start,
          .proto_name = "matchers",
          .json_name = "matchers",
          .repeated = true};
}

constexpr std::array kSides = {ProfileCall::Inner{1, "left"}, ProfileCall::Inner{2, "right"}};

constexpr std::array kCalls = {
    selecting("SelectMergeStacktraces"),
    selecting("SelectMergeProfile"),
    selecting("SelectMergeSpanProfile", 4),
    stepping("SelectSeries", 6),
    stepping("SelectHeatmap", 5),
    matching("LabelNames", 1, 2),
    matching("LabelValues", 2, 3),
    matching("Series", 1, 3),
    ProfileCall{.method = "Diff", .inner = kSides},
    ProfileCall{.method = "ProfileTypes"},
};

}  // namespace

const ProfileCall* find_profile_call(std::string_view path,
                                     const std::vector<std::string>& prefixes) {
  for (const std::string& prefix : prefixes) {
    const std::string begin = prefix + std::string(kService);
    if (!path.starts_with(begin)) {
      continue;
    }
    const auto* const found =
        std::ranges::find(kCalls, path.substr(begin.size()), &ProfileCall::method);
    if (found != kCalls.end()) {
      return found;
    }
  }
  return nullptr;
}

}  // namespace ceems::gate
