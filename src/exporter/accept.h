#pragma once

#include <string>
#include <string_view>

#include "metrics/sink.h"

namespace ceems::exporter {

/// The form in which a client gets the page.
struct PageFormat {
  metrics::Exposition exposition = metrics::Exposition::kText;
  std::string content_type;
};

/// Chooses by the header Accept (RFC 9110 §12.5.1): OpenMetrics 1.0 where the client weighs it at
/// least as high as plain text, else text 0.0.4, also for headers that ask for neither or cannot be
/// read. The parameter `escaping` of the chosen range is echoed where Prometheus knows its value,
/// else it is "underscores".
PageFormat choose_format(std::string_view accept);

}  // namespace ceems::exporter
