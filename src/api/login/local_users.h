#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::api::login {

/// Maps user names to bcrypt hashes.
using UserTable = std::unordered_map<std::string, std::string>;

/// Reads `basic_auth_users`, which has the form of web configuration files (docs/web-config.md).
/// Other keys are refused. Errors name file, line and user, but never a hash.
Result<UserTable> parse_users(const config::Node& document);

/// The file of local users, which is read again when it changes. If it becomes unreadable or
/// invalid, the last valid content stays in use and the error is logged once, so a partial write
/// does not lock anybody out. Safe for concurrent use.
class LocalUsers {
 public:
  /// Fails if the file cannot be read or is invalid.
  static Result<std::unique_ptr<LocalUsers>> open(const std::string& file);
  ~LocalUsers();
  LocalUsers(const LocalUsers&) = delete;
  LocalUsers& operator=(const LocalUsers&) = delete;

  /// The current users.
  [[nodiscard]] std::shared_ptr<const UserTable> users();

  enum class Verdict { kGood, kWrong, kBusy };
  /// Checks the password. For an unknown user it checks a dummy hash, which takes as long. A check
  /// takes tens of milliseconds of CPU time, so one runs at a time and one more may wait; other
  /// callers get kBusy at once.
  [[nodiscard]] Verdict check(const std::string& user, const std::string& password);

 private:
  struct Impl;
  explicit LocalUsers(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::api::login
