#include "exporter/landing.h"

#include "base/text/template.h"
#include "base/version.h"

namespace ceems::exporter {

std::string landing_page(std::string_view telemetry_path,
                         std::string_view targets_path,
                         bool debug_server) {
  const Version& v = version();
  return render_template(kExporterHtml, {.texts = {{"version", std::string(v.version)},
                                                   {"branch", std::string(v.branch)},
                                                   {"revision", std::string(v.revision)},
                                                   {"telemetry_path", std::string(telemetry_path)},
                                                   {"targets_path", std::string(targets_path)},
                                                   {"debug_server", debug_server ? "yes" : ""}}});
}

}  // namespace ceems::exporter
