#pragma once

#include <optional>
#include <string_view>

namespace ceems::kube {

/// A resource quantity (k8s.io/apimachinery pkg/api/resource: a decimal number and one of n u m k M
/// G T P E, Ki Mi Gi Ti Pi Ei, or a decimal exponent e3, E-3): "100m" is 0.1, "1Gi" 1073741824.
/// Nothing on anything else, on negative numbers and on what no double can hold.
std::optional<double> parse_quantity(std::string_view text);

}  // namespace ceems::kube
