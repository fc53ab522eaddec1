#pragma once

#include <string>
#include <string_view>

namespace ceems::exporter {

/// HTML of the page at "/": name, what the program is, version, link to the metrics and, where they
/// are served, to the targets of Grafana Alloy (an empty path: not served) and to the diagnostics.
std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server);

}  // namespace ceems::exporter
