#pragma once

#include <map>
#include <string>
#include <string_view>

namespace ceems::exporter::profile {

/// Whose profile it is.
struct PushTarget {
  std::string service_name;  ///< the unit, by which the load balancer decides who may see it
  std::string pid;
};

/// The message push.v1.PushRequest
/// (https://github.com/grafana/pyroscope/blob/main/api/push/v1/push.proto) with one profile in one
/// series. `raw_profile` is what pprof() returns. Values become valid UTF-8.
std::string encode_push_request(const PushTarget& target,
                                const std::map<std::string, std::string>& external_labels,
                                std::string_view raw_profile);

}  // namespace ceems::exporter::profile
