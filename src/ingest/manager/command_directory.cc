#include "ingest/manager/command_directory.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "os/command.h"

namespace ceems::ingest {

Result<std::filesystem::path> command_directory(const ClusterConfig& config,
                                                std::string_view program,
                                                const std::string& search_path) {
  if (config.cli_path.empty()) {
    CEEMS_TRY_IN("cli.path is not set", found, os::find_program(program, search_path));
    return std::filesystem::path(found).parent_path();
  }
  std::error_code error;
  if (!std::filesystem::exists(config.cli_path, error)) {
    return fail(errno_error(error ? error.value() : ENOENT, "stat " + config.cli_path));
  }
  std::filesystem::path directory = std::filesystem::absolute(config.cli_path, error);
  if (error) {
    return fail(errno_error(error.value(), "cli.path " + config.cli_path));
  }
  return directory;
}

}  // namespace ceems::ingest
