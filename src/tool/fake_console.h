#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/commands.h"
#include "tool/command.h"

namespace ceems::tool {

/// A console for tests: keeps what is written, and reads from a list of lines.
class FakeConsole final : public Console {
 public:
  void print(std::string_view text) override { out += text; }
  void say(std::string_view line) override { err.append(line).append("\n"); }
  std::optional<std::string> read_line() override {
    if (input.empty()) {
      return std::nullopt;
    }
    std::string line = input.front();
    input.pop_front();
    return line;
  }

  std::string out;
  std::string err;
  std::deque<std::string> input;
};

/// The exit status of ceems_tool with these arguments. What main() would print on an error goes to
/// `console.err` as well.
inline int run_tool(const std::vector<std::string>& arguments, Console& console) {
  config::CommandSet set("ceems_tool", "");
  const auto commands = all_commands();
  for (const auto& command : commands) {
    command->add_flags(set.add(command->words(), std::string(command->help())));
  }
  std::vector<const char*> line{"ceems_tool"};
  for (const std::string& argument : arguments) {
    line.push_back(argument.c_str());
  }
  const auto outcome = set.parse(static_cast<int>(line.size()), line.data());
  if (outcome.flags.exit) {
    console.say(outcome.flags.text);
    return *outcome.flags.exit;
  }
  for (const auto& command : commands) {
    if (command->words() == outcome.command) {
      const auto status = command->run(console);
      if (!status) {
        console.say(status.error().message);
      }
      return status.value_or(1);
    }
  }
  return -1;
}

}  // namespace ceems::tool
