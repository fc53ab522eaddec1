#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "export/unit.h"

namespace ceems::exporting {

/// Replaces names of people and what they wrote, so that exported units can be given away: users,
/// groups and projects by the first 16 hexadecimal digits of HMAC-SHA-256 (RFC 2104) of the kind
/// and the name with the key of the site, so that units of one name stay together; names of units
/// and tags are dropped, which hold directories, hosts and command lines, except partition, QOS
/// and exit code. Immutable, safe for concurrent use.
class Anonymiser {
 public:
  /// kInvalidArgument if the key has less than 16 bytes, which could be guessed.
  static Result<Anonymiser> create(std::string_view key);

  void apply(ExportedUnit& unit) const;

 private:
  explicit Anonymiser(std::string_view key) : key_(key) {}
  [[nodiscard]] std::string alias(std::string_view kind, std::string_view name) const;

  std::string key_;
};

}  // namespace ceems::exporting
