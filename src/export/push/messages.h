#pragma once

#include <span>
#include <string>
#include <string_view>

#include "export/push/config.h"
#include "export/unit.h"

namespace ceems::exporting {

// The bodies of requests. Texts of units become valid UTF-8. Pure functions.

/// The message prometheus.WriteRequest of remote write 1.0, not yet compressed
/// (https://prometheus.io/docs/specs/prw/remote_write_spec/): a series with one sample, at the end
/// of the unit, for each of finals() that is known.
std::string write_request(std::span<const EndedUnit> units, const Target& target);

/// The message ExportMetricsServiceRequest
/// (https://opentelemetry.io/docs/specs/otlp/, opentelemetry-proto 1.x): a resource for each unit.
std::string metrics_request(std::span<const EndedUnit> units, const Target& target);

/// The text as a snappy block that is not smaller: literals only, which every decoder takes
/// (https://github.com/google/snappy/blob/main/format_description.txt). A library would save some
/// kilobytes of a few requests a minute.
std::string snappy_literals(std::string_view text);

}  // namespace ceems::exporting
