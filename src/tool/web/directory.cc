#include "tool/web/directory.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace ceems::tool {

Result<> make_directory(const std::string& path) {
  const std::string context = "error creating template and/or output directory: " + path;
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    return {};
  }
  const auto above = std::filesystem::path(path).parent_path();
  if (!above.empty()) {
    std::filesystem::create_directories(above, code);
    if (code) {
      return fail(errno_error(code.value(), context));
    }
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return fail(errno_error(errno, context));
  }
  if (!std::filesystem::is_directory(path, code)) {
    return fail(errno_error(ENOTDIR, context));
  }
  return {};
}

}  // namespace ceems::tool
