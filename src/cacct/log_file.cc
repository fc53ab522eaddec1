#include "cacct/log_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include <fmt/format.h>

namespace ceems::cacct {
namespace {

std::string time_text() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts{};
  ::gmtime_r(&now.tv_sec, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     now.tv_nsec / 1'000'000);
}

}  // namespace

Result<LogFile> LogFile::open(const LogOptions& options) {
  LogFile file;
  if (!options.enabled) {
    return file;
  }
  const std::string path = fmt::format("{}/cacct.{}", options.directory,
                                       options.format == log::Format::kJson ? "json" : "log");
  const mode_t mask = ::umask(0);  // the mode is given in full
  file.fd_.reset(
      ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660));
  const int error = errno;
  ::umask(mask);
  if (!file.fd_.valid()) {
    return fail(errno_error(error, "logging.directory: open " + path));
  }
  file.level_ = options.level;
  file.format_ = options.format;
  return file;
}

void LogFile::write(log::Level level,
                    std::string_view message,
                    std::initializer_list<log::Field> fields) const {
  if (!fd_.valid() || level < level_) {
    return;
  }
  const std::string line =
      log::render(format_, time_text(), level, "cacct", message, fields) + '\n';
  // One call for a whole line: O_APPEND keeps lines of other processes apart.
  [[maybe_unused]] const auto written = ::write(fd_.get(), line.data(), line.size());
}

}  // namespace ceems::cacct
