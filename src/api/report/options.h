#pragma once

#include <chrono>
#include <string>

namespace ceems::api {

/// The block `report` of the configuration file.
struct ReportOptions {
  std::string rules = "/etc/ceems/rules.d";  ///< directory with rules of the site
  /// Reports that are made each second of units that have ended; 0: none until they are asked for.
  double rate = 20;
  std::chrono::milliseconds keep{std::chrono::days(400)};  ///< how long, after the end of the unit
};

}  // namespace ceems::api
