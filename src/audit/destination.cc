#include "audit/destination.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/log.h"

namespace ceems::audit {
namespace {

class File final : public Destination {
 public:
  explicit File(const Options& options) : options_(options) {}

  Result<> reopen() override {
    constexpr mode_t kMode = 0640;
    UniqueFd opened(::open(options_.file.c_str(),
                           O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                           kMode));
    struct stat info{};
    if (!opened.valid() || ::fstat(opened.get(), &info) != 0) {
      return fail(errno_error(errno, "audit file " + options_.file));
    }
    if (!S_ISREG(info.st_mode)) {
      return fail(ErrorCode::kInvalidArgument, "audit file {}: expected a regular file",
                  options_.file);
    }
    descriptor_ = std::move(opened);
    size_ = static_cast<std::uint64_t>(info.st_size);
    rotate_at_ = options_.max_bytes;
    return {};
  }

  Result<> write(std::string_view line) override {
    std::string text(line);
    text += '\n';
    if (rotate_at_ > 0 && size_ > 0 && size_ + text.size() > rotate_at_) {
      if (auto done = rotate(); !done) {
        log::error("cannot rotate the audit log, writing on", {{"err", done.error().message}});
      }
    }
    // One call, so that lines of several programs in one file never mix.
    ssize_t written = -1;
    do {
      written = ::write(descriptor_.get(), text.data(), text.size());
    } while (written < 0 && errno == EINTR);
    if (written < 0 || static_cast<std::size_t>(written) != text.size()) {
      const int cause = written < 0 ? errno : ENOSPC;
      return fail(errno_error(cause, "audit file " + options_.file));
    }
    size_ += text.size();
    return {};
  }

 private:
  [[nodiscard]] std::string numbered(int number) const {
    return fmt::format("{}.{}", options_.file, number);
  }

  Result<> rotate() {
    for (int number = options_.keep - 1; number >= 1; --number) {
      std::rename(numbered(number).c_str(), numbered(number + 1).c_str());  // it may be missing
    }
    if (std::rename(options_.file.c_str(), numbered(1).c_str()) != 0) {
      const auto error = errno_error(errno, "rotating the audit file " + options_.file);
      rotate_at_ += options_.max_bytes;  // the next try
      return fail(error);
    }
    return reopen();
  }

  const Options options_;
  UniqueFd descriptor_;
  std::uint64_t size_ = 0;
  std::uint64_t rotate_at_ = 0;
};

class Journal final : public Destination {
 public:
  Journal(std::string socket, std::string_view program)
      : socket_(std::move(socket)),
        fields_(fmt::format("SYSLOG_IDENTIFIER=ceems-audit\nPRIORITY=5\nCEEMS_PROGRAM={}\nMESSAGE=",
                            program)) {}

  Result<> reopen() override {
    sockaddr_un address{};
    if (socket_.size() >= sizeof(address.sun_path)) {
      return fail(ErrorCode::kInvalidArgument, "journal socket {}: the name is too long", socket_);
    }
    address.sun_family = AF_UNIX;
    std::ranges::copy(socket_, address.sun_path);
    UniqueFd opened(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!opened.valid() || ::connect(opened.get(), reinterpret_cast<const sockaddr*>(&address),
                                     sizeof(address)) != 0) {
      return fail(errno_error(errno, "journal socket " + socket_));
    }
    descriptor_ = std::move(opened);
    return {};
  }

  Result<> write(std::string_view line) override {
    // A JSON text has no line ends, so the short form of the protocol is enough.
    const std::string entry = fields_ + std::string(line) + '\n';
    for (int tries = 0; tries < 2; ++tries) {
      const ssize_t sent =
          ::send(descriptor_.get(), entry.data(), entry.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (sent >= 0) {
        return {};
      }
      const int cause = errno;
      const bool restarted = cause == ECONNREFUSED || cause == ENOTCONN || cause == ECONNRESET;
      if (tries > 0 || !restarted || !reopen()) {
        return fail(errno_error(cause, "journal socket " + socket_));
      }
    }
    return {};
  }

 private:
  const std::string socket_;
  const std::string fields_;
  UniqueFd descriptor_;
};

}  // namespace

Result<std::unique_ptr<Destination>> open_destination(const Options& options,
                                                      std::string_view program) {
  std::unique_ptr<Destination> made;
  if (options.journal) {
    made = std::make_unique<Journal>(options.journal_socket, program);
  } else {
    made = std::make_unique<File>(options);
  }
  CEEMS_TRY(made->reopen());
  return made;
}

}  // namespace ceems::audit
