#pragma once

#include <string>

#include "base/result.h"

namespace ceems::api {

/// Makes the directory (mode 0750, with those above it) when it is missing; gives its absolute
/// path. Started as root, it is given to `user` when it was made here or holds nothing but files
/// of ours, so that the program can write there after the change of user; others are left alone.
Result<std::string> prepare_directory(const std::string& path, const std::string& user);

}  // namespace ceems::api
