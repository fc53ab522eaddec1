#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/answer/envelope.h"
#include "base/json.h"
#include "base/log.h"
#include "tsdb/client.h"

namespace ceems::api {

/// Why an answer lacks a cluster.
inline constexpr std::string_view kNoTsdb = "no_tsdb";
inline constexpr std::string_view kUnavailable = "unavailable";

/// A cluster that an answer lacks: the schema MissingClusters in data/openapi.json.
struct MissingCluster {
  std::string cluster_id;
  std::string_view reason;
};

/// The member "missing" of answers.
inline std::string clusters_json(const std::vector<MissingCluster>& missing) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  for (const MissingCluster& one : missing) {
    json.begin_object().member("cluster_id", one.cluster_id).member("reason", one.reason);
    json.end_object();
  }
  json.end_array();
  return out;
}

/// The clusters whose TSDBs a list is made of: one that fails does not take the others with it.
class AskedClusters {
 public:
  /// `doing` is for the log.
  explicit AskedClusters(std::string_view doing) : doing_(doing) {}

  void without_tsdb(const std::string& cluster_id) { missing_.push_back({cluster_id, kNoTsdb}); }
  void answered() { answered_ = true; }
  void failed(const std::string& cluster_id, const Error& error) {
    failed_ = true;
    if (!tsdb::CancelScope::cancelled()) {
      log::warn(doing_, {{"cluster_id", cluster_id}, {"err", error.message}});
    }
    missing_.push_back({cluster_id, kUnavailable});
  }
  /// Answers with the rows and the clusters that are missing, or that no TSDB responds.
  void answer(net::Response& response, std::string_view rows) const {
    if (failed_ && (!answered_ || tsdb::CancelScope::cancelled())) {
      answer_tsdb_failure(response);
      return;
    }
    answer_data(response, rows, {}, {}, clusters_json(missing_));
  }

 private:
  std::string_view doing_;
  std::vector<MissingCluster> missing_;
  bool answered_ = false, failed_ = false;
};

}  // namespace ceems::api
