#include "host/read_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

namespace ceems::host {
namespace {

/// seq_file returns at least this much unless the file ends: it holds back a record that does not
/// fit only when its buffer, a page or more, is nearly full. So a shorter read is the last one, and
/// we save the call that would only return "end of file".
constexpr std::size_t kShortRead = 1024;
constexpr std::size_t kFirstRead = 8192;

Error read_error(int errno_value, std::string_view path) {
  Error error = errno_error(errno_value, "read " + std::string(path));
  if (errno_value == ENODEV) {  // the cgroup or device of the file is gone
    error.code = ErrorCode::kUnavailable;
  }
  return error;
}

/// Reads from offset 0 to the end or the limit. `read_at(data, size, offset)` is read or pread.
template <typename ReadAt>
Result<> read_all(std::string& buffer, std::size_t limit, std::string_view path, ReadAt read_at) {
  std::size_t used = 0;
  int failure = 0;
  bool done = limit == 0;
  buffer.clear();
  while (!done) {
    const std::size_t room = std::min(limit, std::max({kFirstRead, buffer.capacity(), used * 2}));
    buffer.resize_and_overwrite(room, [&](char* data, std::size_t size) {
      ssize_t count = 0;
      do {
        count = read_at(data + used, size - used, used);
      } while (count < 0 && errno == EINTR);
      if (count < 0) {
        failure = errno;
        done = true;
        return std::size_t{0};
      }
      used += static_cast<std::size_t>(count);
      done = static_cast<std::size_t>(count) < kShortRead || used >= limit;
      return used;
    });
  }
  if (failure != 0) {
    return fail(read_error(failure, path));
  }
  return {};
}

}  // namespace

Result<> read_file_at(int directory_fd, const char* name, std::string& buffer, std::size_t limit) {
  int raw = -1;
  do {
    raw = ::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (raw < 0 && errno == EINTR);
  if (raw < 0) {
    return fail(errno_error(errno, std::string("open ") + name));
  }
  const UniqueFd fd(raw);
  return read_all(buffer, limit, name, [&](char* data, std::size_t size, std::size_t) {
    return ::read(fd.get(), data, size);
  });
}

Result<> read_file(const char* path, std::string& buffer, std::size_t limit) {
  return read_file_at(AT_FDCWD, path, buffer, limit);
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  std::string text;
  CEEMS_TRY(read_file(path.c_str(), text, limit));
  return text;
}

Result<> reread(const UniqueFd& fd, std::string& buffer, std::size_t limit) {
  return read_all(buffer, limit, "open file",
                  [&](char* data, std::size_t size, std::size_t offset) {
                    return ::pread(fd.get(), data, size, static_cast<off_t>(offset));
                  });
}

Result<UniqueFd> open_file(const char* path) {
  int fd = -1;
  do {
    fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) {
    return fail(errno_error(errno, std::string("open ") + path));
  }
  return UniqueFd(fd);
}

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
