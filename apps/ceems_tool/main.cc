// ceems_tool: checks and configures a site that runs CEEMS.

#include <exception>

#include <fmt/format.h>

#include "base/log.h"
#include "config/commands.h"
#include "tool/command.h"

namespace {

namespace tool = ceems::tool;

constexpr std::string_view kDescription =
    "Checks the programs of CEEMS and their files, and writes configuration for them and for "
    "Prometheus. 'ceems_tool COMMAND --help' describes the flags of a command.";

int run(int argc, const char* const* argv) {
  ceems::log::configure(ceems::log::Level::kWarn, ceems::log::Format::kLogfmt);
  ceems::config::CommandSet set("ceems_tool", std::string(kDescription));
  const auto commands = tool::all_commands();
  for (const auto& command : commands) {
    command->add_flags(set.add(command->words(), std::string(command->help())));
  }
  const auto outcome = set.parse(argc, argv);
  if (outcome.flags.exit) {
    fmt::print(*outcome.flags.exit == 0 ? stdout : stderr, "{}", outcome.flags.text);
    return *outcome.flags.exit;
  }
  tool::StandardConsole console;
  for (const auto& command : commands) {
    if (command->words() != outcome.command) {
      continue;
    }
    const auto status = command->run(console);
    if (!status) {
      console.say(fmt::format("ceems_tool: error: {}", status.error().message));
      return 1;
    }
    return *status;
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ceems_tool: error: {}\n", error.what());
    return 1;
  }
}
