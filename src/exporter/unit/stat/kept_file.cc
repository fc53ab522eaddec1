#include "exporter/unit/stat/kept_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace ceems::exporter {
namespace {

/// The kernel returns cgroup.procs in pieces that nearly fill a page, and all other files in one
/// piece. A shorter read than this was therefore the last one, which saves the call that would
/// return 0.
constexpr std::size_t kShortRead = 3072;

}  // namespace

std::size_t FdBudget::default_limit() {
  constexpr std::size_t kMax = 65536;
  struct rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return 0;
  }
  return std::min<std::size_t>(limit.rlim_cur / 4 * 3, kMax);  // the rest is for connections
}

bool FileText::absent() const {
  return error == ENOENT || error == EOPNOTSUPP || error == ENOTDIR || error == EINVAL ||
         error == ENXIO;
}

bool FileText::vanished() const {
  return error == ENODEV;
}

FileText TextBuffer::read(int fd) {
  std::size_t used = 0;
  while (used < kLimit) {
    if (used == bytes_.size()) {
      bytes_.resize(std::min(bytes_.size() * 2, kLimit));
    }
    const ssize_t count =
        ::pread(fd, bytes_.data() + used, bytes_.size() - used, static_cast<off_t>(used));
    if (count < 0) {
      if (errno == EINTR) {
        continue;
      }
      return {.text = {}, .error = errno};
    }
    used += static_cast<std::size_t>(count);
    if (static_cast<std::size_t>(count) < kShortRead) {
      break;
    }
  }
  return {.text = std::string_view(bytes_.data(), used), .error = 0};
}

KeptFile::KeptFile(KeptFile&& other) noexcept
    : fd_(std::move(other.fd_)), budget_(std::exchange(other.budget_, nullptr)) {}

KeptFile& KeptFile::operator=(KeptFile&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    budget_ = std::exchange(other.budget_, nullptr);
  }
  return *this;
}

FileText KeptFile::read(int directory_fd, const char* path, TextBuffer& buffer, FdBudget& budget) {
  if (fd_.valid()) {
    return buffer.read(fd_.get());
  }
  UniqueFd fd(::openat(directory_fd, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd.valid()) {
    return {.text = {}, .error = errno};
  }
  const FileText result = buffer.read(fd.get());
  if (result.ok() && budget.take()) {
    fd_ = std::move(fd);
    budget_ = &budget;
  }
  return result;
}

void KeptFile::close() {
  if (fd_.valid()) {
    fd_.reset();
    std::exchange(budget_, nullptr)->give_back();
  }
}

}  // namespace ceems::exporter
