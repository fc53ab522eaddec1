#include "host/directory.h"

#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace ceems::host {

Result<std::vector<std::string>> list_directory(const std::string& path) {
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory(::opendir(path.c_str()));
  if (!directory) {
    return fail(errno_error(errno, "open " + path));
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    // glibc's readdir() is safe as long as only one thread uses the DIR.
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) {
      break;
    }
    const std::string_view name(static_cast<const char*>(entry->d_name));
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  if (errno != 0) {
    return fail(errno_error(errno, "list " + path));
  }
  std::ranges::sort(names);
  return names;
}

bool is_directory(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_own_sysfs(const std::string& path) {
  struct statfs info{};
  return path == "/sys" || (::statfs(path.c_str(), &info) == 0 && info.f_type == SYSFS_MAGIC);
}

}  // namespace ceems::host
