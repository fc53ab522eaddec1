#include "export/anonymise.h"

#include "base/json.h"
#include "crypto/digest.h"

namespace ceems::exporting {

Result<Anonymiser> Anonymiser::create(std::string_view key) {
  constexpr std::size_t kLeastKey = 16;
  if (key.size() < kLeastKey) {
    return fail(ErrorCode::kInvalidArgument, "the key has {} bytes, at least {} are needed",
                key.size(), kLeastKey);
  }
  return Anonymiser(key);
}

std::string Anonymiser::alias(std::string_view kind, std::string_view name) const {
  constexpr std::size_t kAliasDigits = 16;
  if (name.empty()) {
    return {};
  }
  std::string message(kind);
  message += '\0';
  message += name;
  return crypto::hex(crypto::hmac_sha256(key_, message)).substr(0, kAliasDigits);
}

void Anonymiser::apply(ExportedUnit& unit) const {
  // A service account "PROJECT:svc" is a name like any other.
  unit.user = alias("user", unit.user);
  unit.group = alias("group", unit.group);
  unit.project = alias("project", unit.project);
  unit.name.clear();
  std::string tags;
  JsonWriter json(tags);
  json.begin_object().member("partition", unit.tags.first("partition", "queue"));
  for (const std::string_view kept : {"qos", "exit_code"}) {
    json.member(kept, unit.tags.text(kept));
  }
  json.end_object();
  unit.tags = JsonMembers::parse(tags);
}

}  // namespace ceems::exporting
