#pragma once

#include <string>
#include <string_view>

namespace ceems::net {

/// Decompresses the text. Returns "(broken)" if it is truncated or damaged. Uses the compression
/// libraries and not the code of net.
std::string unzip(std::string_view packed);
std::string undeflate(std::string_view packed);
std::string unzstd(std::string_view packed);

}  // namespace ceems::net
