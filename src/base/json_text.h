#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

namespace ceems {

// Commands of batch systems write some numbers as numbers and others as strings. Pure functions;
// who uses them links Boost.JSON.

/// A text or a whole number as text; empty for anything else, and for none.
inline std::string text_of(const boost::json::value* value) {
  if (value == nullptr) {
    return {};
  }
  if (const auto* text = value->if_string()) {
    return {text->c_str(), text->size()};
  }
  return value->is_int64() ? std::to_string(value->get_int64()) : std::string();
}

/// The same of a member of an object.
inline std::string text_of(const boost::json::object& object, std::string_view key) {
  return text_of(object.if_contains(boost::json::string_view(key.data(), key.size())));
}

}  // namespace ceems
