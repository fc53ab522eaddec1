#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ceems::gate {

/// A request as it came in; texts belong to the caller.
struct RawRequest {
  std::string_view method = {};
  std::string_view target = {};            ///< path and query, not decoded
  std::string_view content_type = {};      ///< empty: none
  std::string_view content_encoding = {};  ///< empty: none
  std::string_view body = {};
};

/// Why a request is not passed on. The zero value is a refusal, too.
struct Refusal {
  int status = 403;
  std::string error_type = "forbidden";
  std::string message = "user do not have permissions to this resource";
  /// Label of the metric of decisions: one of few words.
  std::string_view reason = "denied";

  /// {"status":"error","data":null,"errorType":…,"error":…} and a line end: the form of errors of
  /// Prometheus (https://prometheus.io/docs/prometheus/latest/querying/api/#format-overview), with
  /// "data" as ceems_lb of CEEMS 0.10.2 sends it.
  [[nodiscard]] std::string body() const;
};

Refusal bad_data(std::string message, std::string_view reason);  ///< 400
Refusal forbidden_resource(std::string_view reason);             ///< 403, path or method
Refusal forbidden_units(std::string_view reason);                ///< 403, units
Refusal shared_id(const std::string& unit);                      ///< 403, times of another's unit
Refusal unauthorized();                                          ///< 401, no user
Refusal unknown_cluster();                                       ///< 400
Refusal wrong_method();                                          ///< 405
Refusal large_body();                                            ///< 413
Refusal wrong_media(std::string message);                        ///< 415

template <typename T>
using Checked = std::expected<T, Refusal>;

/// What goes to the backend: exactly what was checked, written anew.
struct Forward {
  std::string method = {};
  std::string path = {};  ///< encoded, begins with '/'
  std::string query = {};
  std::string content_type = {};
  std::string body = {};
};

/// Names and values in the order they came.
using Fields = std::vector<std::pair<std::string, std::string>>;

/// A form or query text (https://url.spec.whatwg.org/#urlencoded-parsing), decoded once. Refuses
/// ';', broken percent-encoding, NUL, and what is no UTF-8: texts that two programs may read
/// differently; and more than 1000 fields.
Checked<Fields> parse_form(std::string_view text);
/// The next field of a form up to its value, which the caller appends, encoded.
void append_name(std::string& form, std::string_view name);

/// The path of a target, decoded, with single slashes and none at the end; and its query, still
/// encoded, a part of the caller's text. Refuses dot segments, encoded slashes and backslashes,
/// NUL, and what is no UTF-8.
struct Target {
  std::string path;
  std::string_view query;
};
Checked<Target> parse_target(std::string_view target);
/// The path with all but unreserved characters and '/' percent-encoded.
std::string write_path(std::string_view path);

/// "text/html" of "text/html; charset=utf-8"; to be compared in any case.
std::string_view media_type(std::string_view content_type);

}  // namespace ceems::gate
