#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace ceems::api {

/// Why an answer lacks a cluster.
inline constexpr std::string_view kNoTsdb = "no_tsdb";
inline constexpr std::string_view kUnavailable = "unavailable";

/// A cluster that an answer lacks: the schema MissingClusters in data/openapi.json.
struct MissingCluster {
  std::string cluster_id;
  std::string_view reason;
};

/// Appends the member "missing".
inline void append_missing(JsonWriter& json, const std::vector<MissingCluster>& missing) {
  json.key("missing").begin_array();
  for (const MissingCluster& one : missing) {
    json.begin_object().member("cluster_id", one.cluster_id).member("reason", one.reason);
    json.end_object();
  }
  json.end_array();
}

}  // namespace ceems::api
