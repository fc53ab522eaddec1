#include "api/answer/entity_tag.h"

#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/digest.h"

namespace ceems::api {
namespace {

constexpr std::size_t kSaltBytes = 16;
constexpr std::size_t kTagBytes = 18;  // 24 characters

std::string_view opaque_part(std::string_view tag) {
  tag = trim(tag);
  if (tag.starts_with("W/")) {
    tag.remove_prefix(2);
  }
  return tag;
}

}  // namespace

EntityTags::EntityTags() : salt_(crypto::random_bytes(kSaltBytes)) {}

std::string EntityTags::make(std::initializer_list<std::string_view> parts) const {
  std::string text = salt_;
  for (const std::string_view part : parts) {
    text += std::to_string(part.size());
    text += ':';
    text += part;
  }
  return "W/\"" + crypto::base64url_encode(crypto::sha256(text).substr(0, kTagBytes)) + "\"";
}

bool client_has(const net::Request& request, std::string_view tag) {
  for (const auto& [name, value] : request.headers) {
    if (to_lower(name) != "if-none-match") {
      continue;
    }
    // Our tags contain no comma, so a tag of another server that is split at a comma never matches.
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::string_view one = take_until(rest, ',');
      if (opaque_part(one) == opaque_part(tag)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ceems::api
