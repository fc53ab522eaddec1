#include "tool/command.h"

#include <cerrno>
#include <cstdio>
#include <iostream>
#include <system_error>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::tool {

void StandardConsole::print(std::string_view text) {
  fmt::print(stdout, "{}", text);
  if (std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write to stdout");
  }
}

void StandardConsole::say(std::string_view line) {
  // Names of jobs, targets and chassis come from other machines.
  for (bool more = true; more;) {
    more = line.find('\n') != std::string_view::npos;
    fmt::print(stderr, "{}\n", terminal_safe(take_until(line, '\n')));
  }
}

std::optional<std::string> StandardConsole::read_line() {
  std::string line;
  if (!std::getline(std::cin, line)) {
    return std::nullopt;
  }
  return line;
}

std::vector<std::unique_ptr<Command>> all_commands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(check_api_command());
  commands.push_back(check_lb_command());
  commands.push_back(check_web_config_command());
  commands.push_back(check_config_command());
  commands.push_back(check_site_command());
  commands.push_back(create_web_config_command());
  commands.push_back(db_info_command());
  commands.push_back(db_backup_command());
  commands.push_back(db_verify_command());
  commands.push_back(db_migrate_command());
  commands.push_back(db_copy_command());
  commands.push_back(export_command());
  commands.push_back(report_command());
  commands.push_back(recording_rules_command());
  commands.push_back(relabel_configs_command());
  commands.push_back(updater_queries_command());
  commands.push_back(emissions_command());
  commands.push_back(validate_energy_command());
  commands.push_back(validate_check_command());
  return commands;
}

}  // namespace ceems::tool
