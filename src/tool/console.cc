#include "tool/console.h"

#include <cstdio>
#include <iostream>

#include <fmt/format.h>

#include "base/strings.h"
#include "cacct/output/answer.h"

namespace ceems::tool {

void StandardConsole::print(std::string_view text) {
  fmt::print(stdout, "{}", text);
  std::fflush(stdout);
}

void StandardConsole::say(std::string_view line) {
  // Names of jobs, targets and chassis come from other machines.
  for (bool more = true; more;) {
    more = line.find('\n') != std::string_view::npos;
    fmt::print(stderr, "{}\n", cacct::terminal_safe(take_until(line, '\n')));
  }
}

std::optional<std::string> StandardConsole::read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) {
    return std::nullopt;
  }
  return line;
}

}  // namespace ceems::tool
