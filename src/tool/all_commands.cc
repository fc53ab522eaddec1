#include "tool/command.h"

namespace ceems::tool {

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
  commands.push_back(recording_rules_command());
  commands.push_back(relabel_configs_command());
  commands.push_back(updater_queries_command());
  commands.push_back(emissions_command());
  commands.push_back(validate_energy_command());
  commands.push_back(validate_check_command());
  return commands;
}

}  // namespace ceems::tool
