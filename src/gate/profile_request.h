#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gate/request.h"
#include "gate/selection.h"
#include "gate/shared_ids.h"

namespace ceems::gate {

/// What of the query API of Pyroscope users may ask for: unary calls of querier.v1.QuerierService
/// over the Connect protocol (https://connectrpc.com/docs/protocol), protocol buffers or JSON, not
/// compressed.
struct ProfileRules {
  /// No metric of profiles is everybody's.
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

/// A call whose selectors were all found and checked. Fields that only narrow a call (time, types,
/// stack traces) pass as they are. Movable; not thread-safe.
class ProfileRequest {
 public:
  /// `rules` must outlive the request. With `clusters` the selectors are told to these alone, and
  /// not checked: the request is none that may be forwarded.
  static Checked<ProfileRequest> read(const RawRequest& raw,
                                      const ProfileRules& rules,
                                      NamedClusters* clusters = nullptr);

  ProfileRequest(ProfileRequest&&) noexcept;
  ProfileRequest& operator=(ProfileRequest&&) noexcept;
  ProfileRequest(const ProfileRequest&) = delete;
  ProfileRequest& operator=(const ProfileRequest&) = delete;
  ~ProfileRequest();

  [[nodiscard]] Selection& selection();
  /// Refuses a call whose times are not those of own units only. A call without start or end may
  /// read all times; one with a step reads from one step before its start, so the step must be
  /// there, finite and positive. `now_ms` plays no part.
  [[nodiscard]] Checked<bool> restrict_times(const SharedIds& ids, std::int64_t now_ms) const;
  /// The call with the canonical texts of its selectors, not compressed.
  [[nodiscard]] Forward forward() const;

 private:
  struct Parts;
  explicit ProfileRequest(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace ceems::gate
