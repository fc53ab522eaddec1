#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ceems::gate {

/// One method of querier.v1.QuerierService and where its selectors stand
/// (https://github.com/grafana/pyroscope, api/querier/v1 and api/types/v1).
struct ProfileCall {
  /// An inner message with a selector, as of Diff.
  struct Inner {
    std::uint32_t number;
    std::string_view name;
  };
  std::string_view method;
  std::uint32_t number = 0;  ///< field of the selector; 0: none
  std::uint32_t start = 3;   ///< field of the start; the end is the next
  std::uint32_t step = 0;    ///< field of the step, seconds as a double; 0: none
  std::uint32_t type = 0;    ///< field of the type of profiles; 0: none
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

/// Null for every other path.
const ProfileCall* find_profile_call(std::string_view path,
                                     const std::vector<std::string>& prefixes);

}  // namespace ceems::gate
