#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace ceems::gate {

/// A request as it was received. The texts belong to the caller.
struct RawRequest {
  std::string_view method = {};
  std::string_view target = {};            ///< path and query, not decoded
  std::string_view content_type = {};      ///< empty: none
  std::string_view content_encoding = {};  ///< empty: none
  std::string_view body = {};
};

/// Why a request is not passed on. A default-constructed Refusal refuses as well.
struct Refusal {
  int status = 403;
  std::string error_type = "forbidden";
  std::string message = "user do not have permissions to this resource";
  /// Value of the label `reason` of ceems_lb_decisions_total (docs/lb/metrics.md).
  std::string_view reason = "denied";

  /// {"status":"error","errorType":…,"error":…} and a line feed. This is the error format of
  /// Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview).
  [[nodiscard]] std::string body() const;
  /// The same with "code" and "message", the error format of the Connect protocol
  /// (https://connectrpc.com/docs/protocol/#error-end-stream).
  [[nodiscard]] std::string connect_body() const;
};

Refusal bad_data(std::string message, std::string_view reason);  ///< 400
Refusal forbidden_resource(std::string_view reason);             ///< 403, path or method
Refusal forbidden_units(std::string_view reason);                ///< 403, units
Refusal shared_id(const std::string& unit);                      ///< 403, times of others' units
Refusal unauthorized();                                          ///< 401, no user
Refusal unknown_cluster();                                       ///< 400
Refusal wrong_method();                                          ///< 405
Refusal large_body();                                            ///< 413
Refusal wrong_media(std::string message);                        ///< 415

template <typename T>
using Checked = std::expected<T, Refusal>;

/// What is sent to the backend: exactly what was checked, written from its parsed form.
struct Forward {
  std::string method = {};
  std::string path = {};  ///< encoded, begins with '/'
  std::string query = {};
  std::string content_type = {};
  std::string body = {};
};

/// The media type of a form in a body.
inline constexpr std::string_view kFormType = "application/x-www-form-urlencoded";

/// Names and values in the order of the request.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// Decodes a form or query string (https://url.spec.whatwg.org/#urlencoded-parsing) once. Refuses
/// what two programs may read differently: ';', broken percent-encoding, NUL and invalid UTF-8.
/// Also refuses more than 1000 fields.
Checked<Fields> parse_form(std::string_view text);
/// Appends the next field of a form up to its '='. The caller appends the encoded value.
void append_name(std::string& form, std::string_view name);

/// A request as the gate reads it. Path and parameters are decoded when they are first needed and
/// only once, so that what is checked, logged and written anew comes from the same texts. Not
/// thread-safe.
class ParsedRequest {
 public:
  /// The texts of `raw` must outlive the request.
  explicit ParsedRequest(const RawRequest& raw) : raw_(raw), query_text_(raw.target) {
    take_until(query_text_, '?');
  }
  ParsedRequest(const ParsedRequest&) = delete;
  ParsedRequest& operator=(const ParsedRequest&) = delete;

  [[nodiscard]] const RawRequest& raw() const { return raw_; }
  /// Decoded, with single slashes and none at the end. Refuses dot segments, encoded slashes and
  /// backslashes, NUL, and invalid UTF-8.
  [[nodiscard]] const Checked<std::string>& path() const;
  /// What follows '?' in the target, still encoded.
  [[nodiscard]] std::string_view query_text() const { return query_text_; }
  /// The parameters in the target.
  [[nodiscard]] const Checked<Fields>& parameters() const;
  /// The parameters in the body. There are none if its type is not that of a form.
  [[nodiscard]] const Checked<Fields>& posted() const;
  /// The values of `query` and `match[]` in body and target, for logs. A form that was refused has
  /// at most 1000, and those that cannot be decoded are returned as they were received.
  [[nodiscard]] std::vector<std::string> queries() const;

 private:
  RawRequest raw_;
  std::string_view query_text_;
  mutable std::optional<Checked<std::string>> path_;
  mutable std::optional<Checked<Fields>> parameters_;
  mutable std::optional<Checked<Fields>> posted_;
};

/// The path with everything percent-encoded except unreserved characters and '/'.
std::string write_path(std::string_view path);

/// Whether a path is that of a call over the Connect protocol: …/package.Service/Method.
bool is_connect_path(std::string_view path);

/// "text/html" of "text/html; charset=utf-8". Compare it without regard to case.
std::string_view media_type(std::string_view content_type);

}  // namespace ceems::gate
