// Requests of a client of the exporter, and the files that the exporter reads about itself.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/text/html.h"
#include "exporter/routes.h"
#include "metrics/process.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto format = ceems::exporter::choose_format(text);
  if (format.content_type.find_first_of("\r\n") != std::string::npos) {
    std::abort();
  }
  const std::string clean = ceems::exporter::clean_path(text);
  if (!clean.starts_with('/') || ceems::exporter::clean_path(clean) != clean) {
    std::abort();
  }
  if (ceems::exporter::scrape_budget(&text).count() > 9500 ||
      ceems::escape_html(text).find('<') != std::string::npos) {
    std::abort();
  }
  static_cast<void>(ceems::metrics::parse_netstat(text).sent);
  return 0;
}
