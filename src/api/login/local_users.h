#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::api::login {

/// Name to bcrypt hash.
using UserTable = std::unordered_map<std::string, std::string>;

/// The key `basic_auth_users` of a document, in the form web configuration files have it
/// (docs/web-config.md); other keys are refused. Errors name file, line and user, never a hash.
Result<UserTable> parse_users(const config::Node& document);

/// The file of local users, read anew when it changes. A file that became unreadable or wrong
/// leaves the last good one in use, logged once: nobody loses access by half a write. Safe for
/// concurrent use.
class LocalUsers {
 public:
  /// Errors of the first reading.
  static Result<std::unique_ptr<LocalUsers>> open(const std::string& file);
  ~LocalUsers();
  LocalUsers(const LocalUsers&) = delete;
  LocalUsers& operator=(const LocalUsers&) = delete;

  /// The users as the file has them now.
  [[nodiscard]] std::shared_ptr<const UserTable> users();

  enum class Verdict { kGood, kWrong, kBusy };
  /// Compares with the user's hash, or with that of nobody for a user who is not there, which takes
  /// as long. Tens of milliseconds of a processor: one at a time, one more may wait; kBusy at once
  /// for others.
  [[nodiscard]] Verdict check(const std::string& user, const std::string& password);

 private:
  struct Impl;
  explicit LocalUsers(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ceems::api::login
