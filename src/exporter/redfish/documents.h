#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::exporter::redfish {

// Parsers of the JSON documents of a Redfish service (DMTF DSP0266, DSP2046), pure functions over
// text. Links are paths below the service's host, with their query; anything else that a document
// calls a link is left out. Errors are kParse.

struct ServiceRoot {
  std::string chassis;   ///< collection of chassis, or empty
  std::string sessions;  ///< where to log in, or empty
};
Result<ServiceRoot> parse_service_root(std::string_view text);

struct Collection {
  std::vector<std::string> members;
  std::string next;  ///< the following page, or empty
};
Result<Collection> parse_collection(std::string_view text);

struct Chassis {
  std::string id;
  std::string power;        ///< its Power resource, or empty
  bool has_system = false;  ///< a computer system is in it
};
/// `link` is where the document came from: its last part stands in for a missing Id.
Result<Chassis> parse_chassis(std::string_view text, std::string_view link);

/// Watts, summed over the PowerControl entries; 0: not told.
struct Watts {
  double current = 0;
  double minimum = 0;
  double maximum = 0;
  double average = 0;
};
Result<Watts> parse_power(std::string_view text);

/// The path and query of "/a/b" or "https://host/a/b"; empty for anything else, and for what is
/// longer than any link may be.
std::string link_path(std::string_view link);

}  // namespace ceems::exporter::redfish
