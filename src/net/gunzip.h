#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

/// The content of one gzip member (RFC 1952) that fills `packed`. kParse for anything else, more
/// behind it included, which readers may take or leave; kInvalidArgument for over `most` bytes.
Result<std::string> gunzip(std::string_view packed, std::size_t most);

}  // namespace ceems::net
