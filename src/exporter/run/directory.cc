#include "exporter/run/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "host/read_file.h"
#include "os/file.h"

namespace ceems::exporter::run {
namespace {

constexpr int kMaxAttempts = 1000;

std::unexpected<Error> failed(const std::string& path) {
  return fail(errno_error(errno, path));
}

/// The directory as /proc shows it, for functions that take a path.
std::string path_of(const UniqueFd& fd) {
  return fmt::format("/proc/self/fd/{}", fd.get());
}

Result<UniqueFd> open_own(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return failed(path);
  }
  if (info.st_uid != ::geteuid()) {
    return fail(ErrorCode::kInvalidArgument, "{}: belongs to another user", path);
  }
  return fd;
}

}  // namespace

Result<DataDirectory> DataDirectory::create(const std::string& path) {
  for (int attempt = 1; attempt <= kMaxAttempts; ++attempt) {
    const std::string name = attempt == 1 ? path : fmt::format("{}-{}", path, attempt);
    const bool made = ::mkdir(name.c_str(), S_IRWXU) == 0;
    if (!made && errno != EEXIST) {
      return failed(name);
    }
    auto fd = open_own(name);
    if (!fd) {
      if (made) {
        return fail(fd.error());
      }
      continue;  // something else has this name
    }
    const auto names = host::list_directory(path_of(*fd));
    if (names && names->empty() && ::fchmod(fd->get(), S_IRWXU) == 0) {
      return DataDirectory(name, *std::move(fd));
    }
  }
  return fail(ErrorCode::kUnavailable, "{}: it exists, and so do {} others like it", path,
              kMaxAttempts - 1);
}

Result<DataDirectory> DataDirectory::open(const std::string& path) {
  CEEMS_TRY(fd, open_own(path));
  return DataDirectory(path, std::move(fd));
}

Result<std::vector<std::string>> DataDirectory::names() const {
  return host::list_directory(path_of(fd_));
}

bool DataDirectory::has(const std::string& name) const {
  return ::faccessat(fd_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<UniqueFd> DataDirectory::open_file(const std::string& name) const {
  // O_NONBLOCK: a pipe that somebody put there would keep open() waiting.
  UniqueFd fd(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return failed(path_ + "/" + name);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}/{}: not a regular file", path_, name);
  }
  return fd;
}

Result<std::string> DataDirectory::read(const std::string& name, std::size_t most) const {
  CEEMS_TRY(fd, open_file(name));
  std::string text(most + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t part = ::read(fd.get(), text.data() + size, text.size() - size);
    if (part < 0 && errno == EINTR) {
      continue;
    }
    if (part < 0) {
      return failed(path_ + "/" + name);
    }
    if (part == 0) {
      break;
    }
    size += static_cast<std::size_t>(part);
  }
  if (size > most) {
    return fail(ErrorCode::kInvalidArgument, "{}/{}: longer than {} bytes", path_, name, most);
  }
  text.resize(size);
  return text;
}

Result<UniqueFd> DataDirectory::create_file(const std::string& name) const {
  UniqueFd fd(::openat(fd_.get(), name.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) {
    return failed(path_ + "/" + name);
  }
  return fd;
}

Result<> DataDirectory::replace(const std::string& name, std::string_view text) const {
  const std::string temporary = "." + name + ".new";
  static_cast<void>(::unlinkat(fd_.get(), temporary.c_str(), 0));  // of a run that was killed
  CEEMS_TRY(fd, create_file(temporary));
  CEEMS_TRY_IN(path_ + "/" + name, os::write_all(fd.get(), text));
  if (::renameat(fd_.get(), temporary.c_str(), fd_.get(), name.c_str()) != 0) {
    return failed(path_ + "/" + name);
  }
  return {};
}

}  // namespace ceems::exporter::run
