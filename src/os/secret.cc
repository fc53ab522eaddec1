#include "os/secret.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"
#include "os/privileges.h"

namespace ceems::os {
namespace {

/// Makes the call, and if access is denied once more with CAP_DAC_READ_SEARCH. -1 and errno on
/// error.
template <typename Call>
int call_as_starter(const Call& call) {
  const int outcome = call();
  if (outcome >= 0 || errno != EACCES) {
    return outcome;
  }
  const RaisedCapabilities raised({CAP_DAC_READ_SEARCH});
  return call();
}

}  // namespace

Result<std::string> read_secret(const std::string& value, const std::string& file) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 20U;
  if (file.empty()) {
    return value;
  }
  const UniqueFd fd(call_as_starter([&] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd.valid()) {
    return fail(errno_error(errno, "open " + file));
  }
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < kMaxBytes) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0) {
      return fail(errno_error(errno, "read " + file));
    }
    if (count == 0) {
      return std::string(trim(text));
    }
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return fail(ErrorCode::kInvalidArgument, "{}: too large for a secret, expected less than 1 MiB",
              file);
}

std::string file_state(const std::string& file) {
  struct stat info{};
  if (file.empty() || call_as_starter([&] { return ::stat(file.c_str(), &info); }) != 0) {
    return {};
  }
  return fmt::format("{}.{}.{}.{} ", info.st_ino, info.st_size, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec);
}

}  // namespace ceems::os
