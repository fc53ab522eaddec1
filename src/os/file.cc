#include "os/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"

namespace ceems::os {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return path.substr(0, slash == 0 ? 1 : slash);
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, std::size_t max_bytes) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) {
    if (errno == ELOOP) {
      return fail(ErrorCode::kInvalidArgument, "{}: expected a regular file, got a symbolic link",
                  path);
    }
    return fail(errno_error(errno, "open " + path));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected a regular file", path);
  }
  std::string content(max_bytes + 1, '\0');
  std::size_t used = 0;
  while (used < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + used, content.size() - used);
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail(errno_error(errno, "read " + path));
    }
    if (count == 0) {
      break;
    }
    used += static_cast<std::size_t>(count);
  }
  if (used > max_bytes) {
    return fail(ErrorCode::kInvalidArgument, "{}: larger than {} bytes", path, max_bytes);
  }
  content.resize(used);
  content.shrink_to_fit();
  return content;
}

Result<> write_all(int descriptor, std::string_view text, std::string_view what) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return fail(errno_error(written < 0 ? errno : EIO, what));
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<> replace_file(const std::string& path, std::string_view content, mode_t mode) {
  const std::string draft = fmt::format("{}.{}", path, ::getpid());
  ::unlink(draft.c_str());  // of a program with this number that crashed here
  UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.valid()) {
    return fail(errno_error(errno, "create " + draft));
  }
  auto done = write_all(file.get(), content, "write " + draft);
  // Without it the new name could survive a crash, but not the content (rename(2), ext4, XFS).
  if (done && ::fsync(file.get()) != 0) {
    done = fail(errno_error(errno, "write " + draft));
  }
  file.reset();
  if (done && std::rename(draft.c_str(), path.c_str()) != 0) {
    done = fail(errno_error(errno, "replace " + path));
  }
  if (!done) {
    ::unlink(draft.c_str());
    return done;
  }
  // The rename itself. It has happened, so an error here (some network file systems) is none.
  const UniqueFd directory(::open(directory_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.valid()) {
    static_cast<void>(::fsync(directory.get()));
  }
  return {};
}

}  // namespace ceems::os
