#include "cacct/output/pager.h"

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "base/fd.h"
#include "base/strings.h"
#include "cacct/output/box.h"
#include "os/child.h"
#include "os/file.h"

namespace ceems::cacct {
namespace {

constexpr const char* kPager = "/usr/bin/less";

/// Whether the text fits on the terminal, both in height and in width.
bool fits(std::string_view text) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    return true;
  }
  const auto lines = std::ranges::count(text, '\n');
  const std::string_view first = text.substr(0, text.find('\n'));
  return lines < size.ws_row && display_width(first) <= size.ws_col;
}

/// Returns false if the pager cannot be started.
bool page(std::string_view text) {
  if (::access(kPager, X_OK) != 0) {
    return false;
  }
  auto pipe = os::make_pipe();
  if (!pipe) {
    return false;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    return false;
  }
  if (child == 0) {
    // F: end if the text fits, R: show bold text, S: cut long lines, X: leave the text behind.
    constexpr std::array<const char*, 3> kArguments{"less", "-FRSX", nullptr};
    ::dup2(pipe->read.get(), STDIN_FILENO);
    // NOLINTBEGIN(concurrency-mt-unsafe): one thread
    ::setenv("LESSSECURE", "1", 1);
    ::setenv("LESSCHARSET", "utf-8", 1);
    // NOLINTEND(concurrency-mt-unsafe)
    ::execv(kPager, const_cast<char* const*>(kArguments.data()));
    ::_exit(127);
  }
  pipe->read.reset();
  // The user may leave the pager early, or interrupt what it does.
  auto* const on_pipe = std::signal(SIGPIPE, SIG_IGN);
  auto* const on_interrupt = std::signal(SIGINT, SIG_IGN);
  static_cast<void>(os::write_all(pipe->write.get(), text));
  pipe->write.reset();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGPIPE, on_pipe);
  std::signal(SIGINT, on_interrupt);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 127;
}

}  // namespace

bool show(std::string_view text, bool paged) {
  if (paged && ::isatty(STDOUT_FILENO) == 1 && !fits(text) && page(text)) {
    return true;
  }
  return os::write_all(STDOUT_FILENO, text).has_value();
}

int show_or_explain(const Result<std::string>& text) {
  if (!text) {
    constexpr std::size_t kMaxError = 400;
    fmt::print(stderr, "cacct: error: {}\n", printable(text.error().message, kMaxError));
    return 1;
  }
  if (!show(*text, false)) {
    fmt::print(stderr, "cacct: error: cannot write to standard output\n");
    return 1;
  }
  return 0;
}

bool shows_bold() {
  const char* const term = std::getenv("TERM");
  const char* const no_color = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         (no_color == nullptr || *no_color == '\0');
}

}  // namespace ceems::cacct
