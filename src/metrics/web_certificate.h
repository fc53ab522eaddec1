#pragma once

#include <cstdint>
#include <functional>

#include "metrics/registry.h"

namespace ceems::metrics {

/// Adds the gauge ceems_web_certificate_not_after_timestamp_seconds, which all servers have: when
/// the certificate of their web configuration ends. It is on the page once the result, for
/// net::ServerOptions::on_certificate, was called. The registry must outlive the result.
std::function<void(std::int64_t end)> web_certificate_gauge(Registry& registry);

}  // namespace ceems::metrics
