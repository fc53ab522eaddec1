#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::gate {

/// One method of querier.v1.QuerierService and the fields that hold its selectors
/// (https://github.com/grafana/pyroscope, api/querier/v1 and api/types/v1).
struct ProfileCall {
  /// An inner message with a selector, as in Diff.
  struct Inner {
    std::uint32_t number;
    std::string_view name;
  };
  std::string_view method;
  // Field numbers; 0: there is no such field.
  std::uint32_t number = 0;  ///< of the selector
  std::uint32_t start = 3;   ///< of the start; the end is the next field
  std::uint32_t step = 0;    ///< of the step, a double in seconds
  std::uint32_t type = 0;    ///< of the profile type
  std::string_view proto_name = {};
  std::string_view json_name = {};
  bool repeated = false;
  std::span<const Inner> inner = {};
};

/// The messages inside Diff.
inline constexpr ProfileCall kSelectingCall{.method = "SelectMergeStacktraces",
                                            .number = 2,
                                            .type = 1,
                                            .proto_name = "label_selector",
                                            .json_name = "labelSelector"};

/// Null if the path is not that of a known call.
const ProfileCall* find_profile_call(std::string_view path,
                                     const std::vector<std::string>& prefixes);

}  // namespace ceems::gate
