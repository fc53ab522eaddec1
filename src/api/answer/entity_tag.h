#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::api {

/// Makes weak entity tags (RFC 9110 §8.8.3) for answers that depend only on a few texts, such as
/// the caller, the request and the state of the database. A tag reveals nothing about the texts.
/// Tags of another process never match, because each process numbers the states of the database on
/// its own. Safe for concurrent use.
class EntityTags {
 public:
  EntityTags();

  [[nodiscard]] std::string make(std::initializer_list<std::string_view> parts) const;

 private:
  const std::string salt_;
};

/// True if the client already has the answer with this tag (If-None-Match, RFC 9110 §13.1.2). "*"
/// does not match, because it is not yet known whether there is an answer at all.
bool client_has(const net::Request& request, std::string_view tag);

}  // namespace ceems::api
