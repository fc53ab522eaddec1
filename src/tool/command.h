#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/flags.h"

namespace ceems::tool {

/// Where a command reads and writes; tests replace it. Not thread-safe.
class Console {
 public:
  virtual ~Console() = default;
  /// Writes to stdout, for programs that read the output.
  virtual void print(std::string_view text) = 0;
  /// Writes a line or several to stderr, for people. Characters that a terminal would obey are
  /// replaced.
  virtual void say(std::string_view line) = 0;
  /// The next line of stdin without its end; nothing at the end of the input.
  virtual std::optional<std::string> read_line() = 0;
};

/// The streams of this process.
class StandardConsole final : public Console {
 public:
  void print(std::string_view text) override;
  void say(std::string_view line) override;
  std::optional<std::string> read_line() override;
};

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
std::unique_ptr<Command> export_command();
std::unique_ptr<Command> report_command();
std::unique_ptr<Command> recording_rules_command();
std::unique_ptr<Command> relabel_configs_command();
std::unique_ptr<Command> updater_queries_command();
std::unique_ptr<Command> validate_energy_command();
std::unique_ptr<Command> validate_check_command();

/// All commands, in the order of --help.
std::vector<std::unique_ptr<Command>> all_commands();

}  // namespace ceems::tool
