#pragma once

#include <string>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::exporter {

/// The format in which a client receives the page.
struct PageFormat {
  metrics::Exposition exposition = metrics::Exposition::kText;
  std::string content_type;
};

/// Selects the format by the Accept header (RFC 9110, section 12.5.1): OpenMetrics 1.0 if the
/// client prefers it to plain text or accepts both equally, otherwise text 0.0.4, also if the
/// header names neither or is invalid. The parameter `escaping` of the selected range is echoed if
/// Prometheus knows its value; otherwise it is "underscores".
PageFormat choose_format(std::string_view accept);

}  // namespace ceems::exporter
