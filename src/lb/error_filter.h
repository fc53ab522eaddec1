#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http.h"
#include "net/relay/relay.h"

namespace ceems::lb {

/// Takes the place of an answer that is no success, from a server that labels are taken out of: its
/// text may name series with all their labels. Of the answer stay the status and, of those that
/// Prometheus knows, the errorType
/// (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview); the message
/// becomes one of a few fixed texts. Not thread-safe.
class ErrorFilter final : public net::BodyFilter {
 public:
  /// `is_json`: the answer says so of itself; others become one line of plain text.
  ErrorFilter(int status, bool is_json) : status_(status), is_json_(is_json) {}

  Result<> feed(std::string_view piece, std::string& out) override;
  Result<> finish(std::string& out) override;

 private:
  int status_;
  bool is_json_;
  bool too_long_ = false;
  std::string body_;  ///< as far as it is worth reading
};

/// Null where the answer has no body or is a success.
std::unique_ptr<net::BodyFilter> make_error_filter(int status, const net::Headers& headers);

}  // namespace ceems::lb
