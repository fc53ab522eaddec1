#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "cacct/output/terminal.h"
#include "os/file.h"

namespace ceems::cacct {
namespace {

constexpr std::array kSignals{SIGINT,  SIGTERM, SIGHUP, SIGQUIT, SIGTSTP,
                              SIGSEGV, SIGABRT, SIGBUS, SIGFPE};

// Of the only LiveScreen, for the handler of signals.
std::array<struct sigaction, kSignals.size()> before_signals;
struct sigaction before_resize;
termios before_keys;
bool has_keys = false;
volatile std::sig_atomic_t changed = 0;

/// Both are safe in a handler of signals.
void enter_screen() {
  constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";  // another screen, no cursor
  if (has_keys) {
    termios raw = before_keys;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  static_cast<void>(::write(STDOUT_FILENO, kEnter.data(), kEnter.size()) < 0);
}
void leave_screen() {
  constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
  static_cast<void>(::write(STDOUT_FILENO, kLeave.data(), kLeave.size()) < 0);
  if (has_keys) {
    ::tcsetattr(STDIN_FILENO, TCSANOW, &before_keys);
  }
}

extern "C" void ceems_cacct_on_signal(int number) {
  const int saved = errno;
  const auto* const at = std::ranges::find(kSignals, number);
  auto& before = before_signals.at(static_cast<std::size_t>(at - kSignals.begin()));
  leave_screen();
  struct sigaction own{};
  ::sigaction(number, &before, &own);
  ::raise(number);  // ends or stops the program; it comes back after SIGCONT
  ::sigaction(number, &own, nullptr);
  enter_screen();
  changed = 1;
  errno = saved;
}

extern "C" void ceems_cacct_on_resize(int /*number*/) {
  changed = 1;
}

struct sigaction action_of(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER;  // so that raise() acts at once
  return action;
}

}  // namespace

LiveScreen::LiveScreen() {
  has_keys = ::tcgetattr(STDIN_FILENO, &before_keys) == 0;
  keys_ = has_keys;
  const struct sigaction restore = action_of(ceems_cacct_on_signal);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals.at(i), &restore, &before_signals.at(i));
  }
  const struct sigaction resize = action_of(ceems_cacct_on_resize);
  ::sigaction(SIGWINCH, &resize, &before_resize);
  enter_screen();
}

LiveScreen::~LiveScreen() {
  leave_screen();
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals.at(i), &before_signals.at(i), nullptr);
  }
  ::sigaction(SIGWINCH, &before_resize, nullptr);
}

bool LiveScreen::draw(const std::vector<std::string>& lines) {
  std::string frame = "\x1b[H";
  const std::size_t count = std::min(lines.size(), terminal_rows());
  for (std::size_t i = 0; i < count; ++i) {
    frame += (i == 0 ? "" : "\n") + lines[i] + "\x1b[K";
  }
  return os::write_all(STDOUT_FILENO, frame + "\x1b[J").has_value();
}

char LiveScreen::wait(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + time;
  while (changed == 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) {
      return 0;
    }
    pollfd input{.fd = keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(left.count())) > 0) {
      char key = 0;
      const auto got = ::read(STDIN_FILENO, &key, 1);
      if (got == 1) {
        return key;
      }
      keys_ = got < 0 && errno == EINTR;
    }
  }
  changed = 0;
  return 0;
}

}  // namespace ceems::cacct
