#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"
#include "net/relay/relay.h"

namespace ceems::lb {

// Removes the labels of `filter_labels` from the answers of a TSDB (docs/lb/access.md) while they
// are streamed to the client.

/// The end of a path of the HTTP API of Prometheus
/// (https://prometheus.io/docs/prometheus/latest/querying/api/), a part of the caller's text.
struct Endpoint {
  std::string_view name;   ///< the last segment: "query"
  std::string_view label;  ///< NAME in ".../label/NAME/values"; otherwise empty
};
Endpoint endpoint_of(std::string_view path);

/// A request and the labels to remove from its answer.
struct HiddenLabels {
  std::vector<std::string> names;
  std::string path = {};     ///< of the request
  std::string cluster = {};  ///< for the log
  bool admin = false;        ///< admins may see labels in error messages
};

/// The filter for an answer with this status and these header fields. Null if the answer is passed
/// on unchanged because it has no labels or no body. Answers with a status of 300 or above go
/// through an ErrorFilter for users and are passed on unchanged to admins. If a filter cannot parse
/// an answer, that is logged and the client gets 502 or an incomplete answer.
std::unique_ptr<net::BodyFilter> make_answer_filter(const HiddenLabels& hidden,
                                                    int status,
                                                    const net::Headers& headers);

/// The kinds of answers of the HTTP API, which determine where the labels are.
enum class AnswerKind : std::uint8_t {
  kSamples,    ///< query, query_range: data.result[].metric
  kSeries,     ///< series: data[]
  kNames,      ///< labels: names in data[]
  kExemplars,  ///< query_exemplars: data[].seriesLabels, data[].exemplars[].labels
};

/// Removes labels from a JSON answer piece by piece. Everything else stays as it is, except
/// whitespace. Memory use does not grow with the answer: at most one name or string is kept. Not
/// thread-safe.
class LabelFilter final : public net::BodyFilter {
 public:
  /// `labels` are the names to remove.
  LabelFilter(AnswerKind kind, std::vector<std::string> labels);
  LabelFilter(const LabelFilter&) = delete;
  LabelFilter& operator=(const LabelFilter&) = delete;
  ~LabelFilter() override;

  /// kParse if the answer is not JSON, has a string of more than 1 MiB among labels, or is nested
  /// deeper than 64 levels.
  Result<> feed(std::string_view piece, std::string& out) override;
  /// kParse if the answer is incomplete.
  Result<> finish(std::string& out) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Replaces an error answer, because its text may name series with all their labels. The status and
/// the errorType stay, if Prometheus knows that type
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview). The message
/// becomes one of a few fixed texts. Not thread-safe.
class ErrorFilter final : public net::BodyFilter {
 public:
  /// `is_json` says whether the Content-Type is JSON; other answers become one line of plain text.
  ErrorFilter(int status, bool is_json) : status_(status), is_json_(is_json) {}

  Result<> feed(std::string_view piece, std::string& out) override;
  Result<> finish(std::string& out) override;

 private:
  int status_;
  bool is_json_;
  bool too_long_ = false;
  std::string body_;  ///< its first bytes, up to a limit
};

}  // namespace ceems::lb
