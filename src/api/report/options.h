#pragma once

#include <string>

namespace ceems::api {

/// The block `report` of the configuration file.
struct ReportOptions {
  std::string rules = "/etc/ceems/rules.d";  ///< directory with rules of the site
};

}  // namespace ceems::api
