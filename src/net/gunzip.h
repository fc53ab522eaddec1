#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ceems::net {

/// Decompresses `packed`, which must be exactly one gzip member (RFC 1952). Returns kParse for
/// anything else, including data after the member, which decompressors treat differently. Returns
/// kInvalidArgument for a content of more than `most` bytes.
Result<std::string> gunzip(std::string_view packed, std::size_t most);

}  // namespace ceems::net
