#include "net/secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/strings.h"

namespace ceems::net {

Result<std::string> read_secret(const std::string& value, const std::string& file) {
  constexpr std::size_t kMost = std::size_t{1} << 20U;
  if (file.empty()) {
    return value;
  }
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    return fail(errno_error(errno, "open " + file));
  }
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < kMost) {
    const ssize_t count = ::read(fd.get(), piece.data(), piece.size());
    if (count < 0) {
      return fail(errno_error(errno, "read " + file));
    }
    if (count == 0) {
      return std::string(trim(text));
    }
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  return fail(ErrorCode::kInvalidArgument, "{}: too large for a secret", file);
}

}  // namespace ceems::net
