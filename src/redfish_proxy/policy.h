#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::redfish_proxy {

/// Which resources of a BMC may be requested, and with which methods. Safe for concurrent use.
class ResourcePolicy {
 public:
  /// Regular expressions (RE2) that are searched in the decoded path; one of them must match. An
  /// empty list means default_resources(). Returns kInvalidArgument for an invalid expression.
  static Result<std::shared_ptr<const ResourcePolicy>> create(
      const std::vector<std::string>& resources);

  enum class Verdict : std::uint8_t { kAllowed, kPathRefused, kMethodRefused };
  /// `path` is decoded and clean. All methods but GET and HEAD are refused, whatever the
  /// expressions allow, with two exceptions that are needed to log in and out: POST to a collection
  /// of sessions and DELETE of a session.
  [[nodiscard]] Verdict check(std::string_view method, std::string_view path) const;

  ~ResourcePolicy();
  ResourcePolicy(const ResourcePolicy&) = delete;
  ResourcePolicy& operator=(const ResourcePolicy&) = delete;

 private:
  struct Impl;
  explicit ResourcePolicy(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The service root, sessions, chassis and their power (DSP0266, DSP2046).
std::vector<std::string> default_resources();

/// The methods that are allowed for some resource, for the header Allow.
inline constexpr std::string_view kMethods = "GET, HEAD, POST, DELETE";

}  // namespace ceems::redfish_proxy
