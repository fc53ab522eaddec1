#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::redfish {

// Parsers of the JSON documents of a Redfish service (DMTF DSP0266, DSP2046). They are pure
// functions of text. Links are paths on the service's host, with their query; any other link in a
// document is left out. Errors are kParse.

struct ServiceRoot {
  std::string chassis;   ///< path of the collection of chassis, or empty
  std::string sessions;  ///< path for logging in, or empty
};
Result<ServiceRoot> parse_service_root(std::string_view text);

struct Collection {
  std::vector<std::string> members;
  std::string next;  ///< path of the next page, or empty
};
Result<Collection> parse_collection(std::string_view text);

struct Chassis {
  std::string id;
  std::string power;        ///< path of its Power resource, or empty
  bool has_system = false;  ///< it contains a computer system
};
/// `link` is the path of the document. Its last part replaces a missing Id.
Result<Chassis> parse_chassis(std::string_view text, std::string_view link);

/// Watts, summed over the PowerControl entries; 0 if unknown.
struct Watts {
  double current = 0;
  double minimum = 0;
  double maximum = 0;
  double average = 0;
};
Result<Watts> parse_power(std::string_view text);

/// The path and query of "/a/b" or "https://host/a/b". Empty for anything else and for a link that
/// is too long.
std::string link_path(std::string_view link);

}  // namespace ceems::exporter::redfish
