#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::lb {

/// What an answer of the HTTP API of Prometheus holds, and so where its labels stand
/// (https://prometheus.io/docs/prometheus/latest/querying/api/).
enum class AnswerKind : std::uint8_t {
  kSamples,    ///< query, query_range: data.result[].metric
  kSeries,     ///< series: data[]
  kNames,      ///< labels: names in data[]
  kExemplars,  ///< query_exemplars: data[].seriesLabels, data[].exemplars[].labels
};

/// Takes labels out of a JSON answer while it passes, piece by piece; everything else stays as it
/// is but for blanks. Memory does not grow with the answer: the longest name or text is all it
/// holds. Not thread-safe.
class LabelFilter {
 public:
  /// `labels` are the names to take out.
  LabelFilter(AnswerKind kind, std::vector<std::string> labels);
  LabelFilter(LabelFilter&&) noexcept;
  LabelFilter& operator=(LabelFilter&&) noexcept;
  LabelFilter(const LabelFilter&) = delete;
  LabelFilter& operator=(const LabelFilter&) = delete;
  ~LabelFilter();

  /// Appends what can go out after this piece. kParse where the answer is no JSON (any more), holds
  /// a text of over 1 MiB in a place where labels are, or is nested deeper than 64.
  Result<> feed(std::string_view piece, std::string& out);
  /// The answer is at its end: kParse where it is not complete.
  Result<> finish(std::string& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::lb
