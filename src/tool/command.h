#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "tool/console.h"

namespace ceems::tool {

/// One command of ceems_tool. It holds the values of its flags. Not thread-safe.
class Command {
 public:
  virtual ~Command() = default;
  [[nodiscard]] virtual std::string_view words() const = 0;  ///< "check site"
  [[nodiscard]] virtual std::string_view help() const = 0;   ///< one sentence
  virtual void add_flags(config::FlagSet& flags) = 0;
  /// Does the work after the flags were parsed. Returns the exit status. An error is printed by the
  /// caller as "ceems_tool: error: message", and the exit status is 1.
  virtual Result<int> run(Console& console) = 0;
};

std::unique_ptr<Command> check_api_command();
std::unique_ptr<Command> check_lb_command();
std::unique_ptr<Command> check_web_config_command();
std::unique_ptr<Command> check_config_command();
std::unique_ptr<Command> check_site_command();
std::unique_ptr<Command> create_web_config_command();
std::unique_ptr<Command> emissions_command();
std::unique_ptr<Command> db_info_command();
std::unique_ptr<Command> db_backup_command();
std::unique_ptr<Command> db_verify_command();
std::unique_ptr<Command> db_migrate_command();
std::unique_ptr<Command> db_copy_command();
std::unique_ptr<Command> recording_rules_command();
std::unique_ptr<Command> relabel_configs_command();
std::unique_ptr<Command> updater_queries_command();
std::unique_ptr<Command> validate_energy_command();
std::unique_ptr<Command> validate_check_command();

/// All commands, in the order of --help.
std::vector<std::unique_ptr<Command>> all_commands();

}  // namespace ceems::tool
