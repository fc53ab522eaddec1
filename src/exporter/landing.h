#pragma once

#include <string>
#include <string_view>

namespace ceems::exporter {

/// web/pages/exporter.html, a template (base/text/template.h).
extern const std::string_view kExporterHtml;

/// HTML of the page at "/": the name and purpose of the program, its version, and links to the
/// metrics and, if they are served, to the targets of Grafana Alloy (not served if the path is
/// empty) and to the diagnostics.
std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server);

}  // namespace ceems::exporter
