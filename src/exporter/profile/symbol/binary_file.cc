#include "exporter/profile/symbol/binary_file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "os/privileges.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxSize = std::uint64_t{4} << 30U;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
// O_NONBLOCK: the open of a pipe does not wait for its other end.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

Result<BinaryFile> open_failed(std::string_view path) {
  return fail(errno_error(errno, "open " + printable(path, 256)));
}

}  // namespace

Result<BinaryFile> BinaryFile::examined(UniqueFd fd, std::string_view path) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) {
    return open_failed(path);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(ErrorCode::kInvalidArgument, "{}: expected a regular file", printable(path, 256));
  }
  BinaryFile file;
  file.fd_ = std::move(fd);
  file.owner_ = info.st_uid;
  file.identity_ = {.device = info.st_dev,
                    .inode = info.st_ino,
                    .size = static_cast<std::uint64_t>(info.st_size),
                    .modified_ns = info.st_mtim.tv_sec * kNsPerSecond + info.st_mtim.tv_nsec};
  if (file.size() > kMaxSize) {
    return fail(ErrorCode::kInvalidArgument, "{}: larger than {} bytes", printable(path, 256),
                kMaxSize);
  }
  return file;
}

Result<BinaryFile> BinaryFile::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kFlags));
  return fd.valid() ? examined(std::move(fd), path) : open_failed(path);
}

Result<BinaryFile> BinaryFile::open_in_process(const host::Paths& paths,
                                               pid_t pid,
                                               const std::string& path,
                                               Links links) {
  const std::string root = fmt::format("{}/{}/root", paths.proc.string(), pid);
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH};
  const UniqueFd directory(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) {
    return open_failed(root);
  }
  open_how how{};
  how.flags = static_cast<std::uint64_t>(kFlags);
  // Magic links lead anywhere, so a job could name descriptors of other processes by them.
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS |
                (links == Links::kRefuse ? RESOLVE_NO_SYMLINKS : 0U);
  // A rename during the walk makes the kernel give up with EAGAIN, and a job could do it for ever.
  UniqueFd fd;
  for (int attempt = 0; attempt < 3 && !fd.valid(); ++attempt) {
    fd.reset(
        static_cast<int>(::syscall(SYS_openat2, directory.get(), path.c_str(), &how, sizeof(how))));
    if (!fd.valid() && errno != EAGAIN) {
      break;
    }
  }
  if (!fd.valid() && errno == ENOSYS) {
    return fail(ErrorCode::kUnavailable,
                "open {}: requires Linux 5.6, and RestrictSUIDSGID= of systemd must not be set",
                printable(path, 256));
  }
  return fd.valid() ? examined(std::move(fd), path) : open_failed(path);
}

Result<BinaryFile> BinaryFile::open_mapping(const host::Paths& paths,
                                            pid_t pid,
                                            std::uint64_t start,
                                            std::uint64_t end) {
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE, CAP_DAC_READ_SEARCH};
  return open(fmt::format("{}/{}/map_files/{:x}-{:x}", paths.proc.string(), pid, start, end));
}

BinaryFile BinaryFile::of_bytes(std::string bytes) {
  BinaryFile file;
  file.bytes_ = std::move(bytes);
  file.identity_.size = file.bytes_.size();
  return file;
}

Result<std::string> BinaryFile::read(std::uint64_t offset, std::uint64_t size) const {
  if (offset > this->size() || size > this->size() - offset) {
    return fail(ErrorCode::kParse, "expected {} bytes at {}, but the file ends before", size,
                offset);
  }
  if (!fd_.valid()) {
    return bytes_.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }
  std::string content(static_cast<std::size_t>(size), '\0');
  std::size_t used = 0;
  while (used < content.size()) {
    const ssize_t count = ::pread(fd_.get(), content.data() + used, content.size() - used,
                                  static_cast<off_t>(offset + used));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return fail(ErrorCode::kParse, "the file became shorter while it was read");
    }
    used += static_cast<std::size_t>(count);
  }
  return content;
}

}  // namespace ceems::exporter::profile
