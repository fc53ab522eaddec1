#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "net/http.h"

namespace ceems::api {

/// Cross-origin headers (WHATWG Fetch). Safe for concurrent use.
class Cors {
 public:
  /// `origin` is a regular expression (RE2) that must match the whole origin. The dot matches line
  /// ends.
  static Result<Cors> create(std::string_view origin, const std::vector<std::string>& user_headers);
  Cors(Cors&&) noexcept;
  Cors& operator=(Cors&&) noexcept;
  Cors(const Cors&) = delete;
  Cors& operator=(const Cors&) = delete;
  ~Cors();

  [[nodiscard]] bool allows(std::string_view origin) const;
  /// Adds the headers if the request has an Origin header. They allow the origin if it matches.
  void add_headers(const net::Request& request, net::Response& response) const;

 private:
  struct Impl;
  explicit Cors(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::api
