#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "net/http.h"

namespace ceems::api {

/// Weak entity tags (RFC 9110 §8.8.3) of answers that follow from a few texts: the caller, the
/// request, the state of the data base. A tag tells nothing about the texts, and none of another
/// process, which counts the states of its data base anew, is ever taken for one of this. Safe for
/// concurrent use.
class EntityTags {
 public:
  EntityTags();

  [[nodiscard]] std::string make(std::initializer_list<std::string_view> parts) const;

 private:
  const std::string salt_;
};

/// True when the request says that the client has what the tag stands for (If-None-Match,
/// RFC 9110 §13.1.2). "*" is no tag of ours: whether there is an answer at all is not known yet.
bool client_has(const net::Request& request, std::string_view tag);

}  // namespace ceems::api
