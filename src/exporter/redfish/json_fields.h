#pragma once

#include <string>
#include <string_view>

#include <boost/json.hpp>

#include "base/result.h"

namespace ceems::exporter::redfish {

// Tolerant access to fields of JSON documents, for the parsers of this folder. A field that is
// missing or of another type is null or empty.

/// Errors: kParse.
Result<boost::json::object> parse_object(std::string_view text);

const boost::json::object* object_at(const boost::json::object& object, std::string_view key);
const boost::json::array* array_at(const boost::json::object& object, std::string_view key);
std::string string_at(const boost::json::object& object, std::string_view key);

}  // namespace ceems::exporter::redfish
