#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gate/request.h"
#include "gate/selection.h"
#include "gate/shared_ids.h"

namespace ceems::gate {

/// What users may ask of Pyroscope: unary calls of querier.v1.QuerierService over the Connect
/// protocol (https://connectrpc.com/docs/protocol), in protocol buffers or JSON, not compressed.
struct ProfileRules {
  /// No profile is visible to everybody, so there are no shared metrics.
  SelectionRules selection = {
      .unit_label = "service_name",
      .shared_metrics = {},
      .internal_labels = {"__name__", "__type__", "__unit__", "__profile_type__", "__period_type__",
                          "__period_unit__", "__session_id__"},
      .raw_safe = true};
  std::vector<std::string> prefixes = {""};
  std::size_t max_body_bytes = std::size_t{1} << 20U;
};

class NamedClusters;

/// A call all of whose selectors were found and checked. Known fields that only narrow a call
/// (times, types, stack traces; profile_fields.h) are passed on unchanged; all others are refused.
/// Movable; not thread-safe.
class ProfileRequest {
 public:
  /// Whether read() accepts the method and the path.
  static bool accepts_route(const ParsedRequest& received, const ProfileRules& rules);
  /// `rules` must outlive the request; `received` need not. With `clusters`, the selectors are only
  /// added to these and not checked, so the request must not be forwarded.
  static Checked<ProfileRequest> read(const ParsedRequest& received,
                                      const ProfileRules& rules,
                                      NamedClusters* clusters = nullptr);

  ProfileRequest(ProfileRequest&&) noexcept;
  ProfileRequest& operator=(ProfileRequest&&) noexcept;
  ProfileRequest(const ProfileRequest&) = delete;
  ProfileRequest& operator=(const ProfileRequest&) = delete;
  ~ProfileRequest();

  [[nodiscard]] Selection& selection();
  /// The times that the call may read, in milliseconds since the epoch: all times if one is missing
  /// or invalid. `now_ms` is not used.
  [[nodiscard]] promql::TimeSpan times_read(std::int64_t now_ms) const;
  /// Refuses a call that may read times of others' units. A call without start or end may read all
  /// times. A call with a step reads from one step before its start, so its step must be given,
  /// finite and positive. `now_ms` is not used.
  [[nodiscard]] Checked<bool> restrict_times(const SharedIds& ids, std::int64_t now_ms) const;
  /// The call to send on, with its selectors in canonical form, not compressed.
  [[nodiscard]] Forward forward() const;

 private:
  struct Parts;
  explicit ProfileRequest(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ceems::gate
