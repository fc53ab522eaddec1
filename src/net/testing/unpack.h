#pragma once

#include <string>
#include <string_view>

namespace ceems::net {

/// What the packed text unpacks to, "(broken)" where it is cut off or damaged. With libraries, not
/// with net's own code.
std::string unzip(std::string_view packed);
std::string undeflate(std::string_view packed);
std::string unzstd(std::string_view packed);

}  // namespace ceems::net
