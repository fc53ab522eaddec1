#pragma once

#include <string>

#include "base/result.h"

namespace ceems::api {

/// Makes the directory if it is missing (mode 0750, with those above it) and returns its absolute
/// path. A server started as root then gives it to `user`, so that it can write there after it has
/// dropped its privileges. Root's directories that contain files of other programs are left alone,
/// and so are directories of other users.
Result<std::string> prepare_directory(const std::string& path, const std::string& user);

}  // namespace ceems::api
