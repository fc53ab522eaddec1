#include "api/login/key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "access/session.h"
#include "base/fd.h"
#include "base/strings.h"
#include "crypto/digest.h"
#include "os/file.h"

namespace ceems::api::login {
namespace {

constexpr std::size_t kMaxFileBytes = 4096;

/// Creates the file atomically: writes a temporary file and links it, which fails if another
/// program was faster.
Result<> make_key(const std::string& file) {
  const std::string made = fmt::format("{}.{}", file, ::getpid());
  ::unlink(made.c_str());
  constexpr mode_t kOwnerOnly = 0600;
  const UniqueFd descriptor(
      ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly));
  if (!descriptor.valid()) {
    return fail(errno_error(errno, "creating " + made));
  }
  const std::string key = crypto::hex(crypto::random_bytes(access::Signer::kMinKeyBytes)) + "\n";
  auto done = os::write_all(descriptor.get(), key, "writing " + made);
  if (done && ::fsync(descriptor.get()) != 0) {
    done = fail(errno_error(errno, "writing " + made));
  }
  if (done && ::link(made.c_str(), file.c_str()) != 0 && errno != EEXIST) {
    done = fail(errno_error(errno, "creating " + file));
  }
  ::unlink(made.c_str());
  return done;
}

}  // namespace

Result<std::string> read_key(const std::string& file) {
  const UniqueFd descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!descriptor.valid() || ::fstat(descriptor.get(), &info) != 0) {
    return fail(errno_error(errno, "session key " + file));
  }
  constexpr mode_t kForbidden = S_IWGRP | S_IRWXO;
  if (!S_ISREG(info.st_mode) || (info.st_mode & kForbidden) != 0) {
    return fail(ErrorCode::kPermissionDenied,
                "session key {}: expected a file that only its owner may write and others may not "
                "read (mode 0600 or 0640)",
                file);
  }
  std::string text;
  std::array<char, kMaxFileBytes> buffer{};
  while (text.size() <= kMaxFileBytes) {
    const ssize_t count = ::read(descriptor.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return fail(errno_error(errno, "session key " + file));
    }
    if (count == 0) {
      break;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  const std::string_view key = trim(text);
  if (key.size() < access::Signer::kMinKeyBytes || text.size() > kMaxFileBytes) {
    return fail(ErrorCode::kInvalidArgument, "session key {}: expected {} to {} characters", file,
                access::Signer::kMinKeyBytes, kMaxFileBytes);
  }
  return std::string(key);
}

Result<std::string> read_or_make_key(const std::string& file) {
  struct stat info{};
  if (::stat(file.c_str(), &info) != 0 && errno == ENOENT) {
    CEEMS_TRY(make_key(file));
  }
  return read_key(file);
}

}  // namespace ceems::api::login
