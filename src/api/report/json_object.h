#pragma once

#include <string_view>
#include <utility>

#include <boost/json.hpp>

namespace ceems::api {

/// The JSON object in a column of the database; empty for any other text.
inline boost::json::object object_of(std::string_view text) {
  boost::json::error_code error;
  auto value = boost::json::parse(boost::json::string_view(text.data(), text.size()), error);
  return !error && value.is_object() ? std::move(value.as_object()) : boost::json::object();
}

}  // namespace ceems::api
