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

// Takes the labels of `filter_labels` out of what a TSDB answers (docs/lb/access.md), while it
// passes.

/// The end of a path of the HTTP API of Prometheus
/// (https://prometheus.io/docs/prometheus/latest/querying/api/), a part of the caller's text.
struct Endpoint {
  std::string_view name;   ///< the last segment: "query"
  std::string_view label;  ///< of ".../label/NAME/values": NAME; else empty
};
Endpoint endpoint_of(std::string_view path);

/// A request in whose answer labels are hidden.
struct HiddenLabels {
  std::vector<std::string> names;
  std::string path = {};     ///< of the request
  std::string cluster = {};  ///< for the log
  bool admin = false;        ///< error messages may name labels to admins
};

/// The filter for an answer with this status and these fields. Null where it passes unchanged: it
/// holds no labels, or has no body. Answers of 300 and above to users become an ErrorFilter's,
/// those to admins pass. An answer that a filter cannot read fails, which is logged: the client
/// gets 502 or half an answer.
std::unique_ptr<net::BodyFilter> make_answer_filter(const HiddenLabels& hidden,
                                                    int status,
                                                    const net::Headers& headers);

/// What an answer of the HTTP API holds, and so where its labels are.
enum class AnswerKind : std::uint8_t {
  kSamples,    ///< query, query_range: data.result[].metric
  kSeries,     ///< series: data[]
  kNames,      ///< labels: names in data[]
  kExemplars,  ///< query_exemplars: data[].seriesLabels, data[].exemplars[].labels
};

/// Takes labels out of a JSON answer piece by piece; everything else stays as it is, except
/// whitespace. Memory does not grow with the answer: it holds at most one name or text. Not
/// thread-safe.
class LabelFilter final : public net::BodyFilter {
 public:
  /// `labels` are the names to take out.
  LabelFilter(AnswerKind kind, std::vector<std::string> labels);
  LabelFilter(const LabelFilter&) = delete;
  LabelFilter& operator=(const LabelFilter&) = delete;
  ~LabelFilter() override;

  /// kParse where the answer is not JSON, holds a text of over 1 MiB in a place where labels are,
  /// or is nested deeper than 64.
  Result<> feed(std::string_view piece, std::string& out) override;
  /// kParse where the answer is not complete.
  Result<> finish(std::string& out) override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Replaces an answer that is not a success: its text may name series with all their labels. Keeps
/// the status and, of those that Prometheus knows, the errorType
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview); the message
/// becomes one of a few fixed texts. Not thread-safe.
class ErrorFilter final : public net::BodyFilter {
 public:
  /// `is_json`: by its Content-Type; others become one line of plain text.
  ErrorFilter(int status, bool is_json) : status_(status), is_json_(is_json) {}

  Result<> feed(std::string_view piece, std::string& out) override;
  Result<> finish(std::string& out) override;

 private:
  int status_;
  bool is_json_;
  bool too_long_ = false;
  std::string body_;  ///< as far as it is worth reading
};

}  // namespace ceems::lb
