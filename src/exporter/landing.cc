#include "exporter/landing.h"

#include <fmt/format.h>

#include "base/html.h"
#include "base/version.h"

namespace ceems::exporter {

std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server) {
  const Version& v = version();
  const std::string targets =
      targets_path.empty() ? ""
                           : fmt::format("<li><a href=\"{}\">Grafana Alloy Targets</a></li>\n",
                                         escape_html(targets_path));
  return fmt::format(
      "<!DOCTYPE html>\n"
      "<html lang=\"en\">\n"
      "<head>\n"
      "<meta charset=\"UTF-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>ceems_exporter</title>\n"
      "<style>\n"
      "body {{ font-family: sans-serif; margin: 0; color: #1b1b1b; background: #fff }}\n"
      "header {{ background: #3cc9beff; padding: 1rem 1.5rem }}\n"
      "h1 {{ margin: 0; font-size: 1.6rem }}\n"
      "main {{ padding: 0.5rem 1.5rem; line-height: 1.5 }}\n"
      "a {{ color: #005a53 }}\n"
      "</style>\n"
      "</head>\n"
      "<body>\n"
      "<header><h1>ceems_exporter</h1></header>\n"
      "<main>\n"
      "<p>Prometheus exporter of the compute units of this node (jobs, machines, containers): "
      "their\n"
      "use of CPU and memory, their energy, and the node they run on.</p>\n"
      "<p>Version {} (branch: {}, revision: {})</p>\n"
      "<ul>\n"
      "<li><a href=\"{}\">Metrics</a></li>\n"
      "{}{}"
      "</ul>\n"
      "</main>\n"
      "</body>\n"
      "</html>\n",
      escape_html(v.version), escape_html(v.branch), escape_html(v.revision),
      escape_html(telemetry_path), targets,
      debug_server ? "<li><a href=\"/debug/\">Diagnostics</a> (from localhost only)</li>\n" : "");
}

}  // namespace ceems::exporter
