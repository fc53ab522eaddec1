#include "store/sqlite/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string_view>
#include <thread>

#include "base/log.h"
#include "base/strings.h"

namespace ceems::store::sqlite {
namespace {

/// The number in a lock file: the process that wrote it.
std::string holder_of(const UniqueFd& file) {
  std::array<char, 32> holder{};
  const ssize_t size = ::pread(file.get(), holder.data(), holder.size() - 1, 0);
  return std::string(
      trim(std::string_view(holder.data(), size > 0 ? static_cast<std::size_t>(size) : 0)));
}

/// Whether the process has ended. If it was killed while forking, the child holds the lock until it
/// calls exec(), a few milliseconds later.
bool has_ended(std::string_view pid) {
  const auto number = parse_int<pid_t>(pid);
  return number && *number > 0 && ::kill(*number, 0) != 0 && errno == ESRCH;
}

constexpr mode_t kMode = 0640;
constexpr int kLockTries = 100;
constexpr std::chrono::milliseconds kLockPause{20};

}  // namespace

Result<UniqueFd> lock_file(const std::string& database) {
  const std::string path = database + ".lock";
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file.valid()) {
    return fail(errno_error(errno, fmt::format("lock file {}", path)));
  }
  for (int tries = 1; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) {
      return fail(errno_error(errno, fmt::format("lock file {}", path)));
    }
    const std::string holder = holder_of(file);
    if (!has_ended(holder) || tries == kLockTries) {
      return fail(ErrorCode::kUnavailable, "database is in use: process {} holds {}",
                  holder.empty() ? "?" : printable(holder), path);
    }
    std::this_thread::sleep_for(kLockPause);
  }
  const std::string pid = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    // The number is only for messages. A full disk is reported by the first write of data.
    log::debug("cannot write the lock file", {{"file", path}});
  }
  return file;
}

}  // namespace ceems::store::sqlite
