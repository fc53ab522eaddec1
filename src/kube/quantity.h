#pragma once

#include <optional>
#include <string_view>

namespace ceems::kube {

/// Parses a resource quantity (k8s.io/apimachinery pkg/api/resource): a decimal number followed by
/// one of n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent (e3, E-3). "100m" is 0.1,
/// "1Gi" is 1073741824. Nothing for any other text, negative numbers and numbers too large for a
/// double.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace ceems::kube
