#include "cacct/output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/strings.h"

namespace ceems::cacct {

std::size_t terminal_width() {
  constexpr std::size_t kMinWidth = 60;
  constexpr std::size_t kMaxColumns = 240;
  constexpr std::size_t kDefaultWidth = 80;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kDefaultWidth;
  }
  return std::clamp<std::size_t>(size.ws_col, kMinWidth, kMaxColumns);
}

std::size_t list_width() {
  constexpr std::size_t kPlainWidth = 100;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kPlainWidth;
}

std::size_t terminal_rows() {
  constexpr std::size_t kDefaultRows = 24;
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return known ? size.ws_row : kDefaultRows;
}

bool lacks_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') {
      continue;
    }
    const std::string locale = to_lower(value);
    return locale.find("utf-8") == std::string::npos && locale.find("utf8") == std::string::npos;
  }
  return false;
}

}  // namespace ceems::cacct
