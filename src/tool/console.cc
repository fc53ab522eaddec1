#include "tool/console.h"

#include <cstdio>
#include <iostream>

#include <fmt/format.h>

namespace ceems::tool {

void StandardConsole::print(std::string_view text) {
  fmt::print(stdout, "{}", text);
  std::fflush(stdout);
}

void StandardConsole::say(std::string_view line) {
  fmt::print(stderr, "{}\n", line);
}

std::optional<std::string> StandardConsole::read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) {
    return std::nullopt;
  }
  return line;
}

}  // namespace ceems::tool
