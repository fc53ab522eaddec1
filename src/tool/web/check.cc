#include <filesystem>

#include <fmt/format.h>

#include "config/yaml.h"
#include "net/server/tls.h"
#include "net/server/web_config.h"
#include "tool/command.h"

namespace ceems::tool {
namespace {

/// Reads a web configuration and the certificates that it names.
Result<> check_web_config(const std::string& file) {
  CEEMS_TRY(document, config::load_yaml(file));
  CEEMS_TRY(read,
            net::parse_web_config(document, std::filesystem::path(config::directory_of(file))));
  if (!read.tls.enabled) {
    return {};
  }
  const auto context = net::make_tls_context(read.tls);
  return context ? Result<>() : fail(context.error());
}

class CheckWebConfig final : public Command {
 public:
  [[nodiscard]] std::string_view words() const override { return "check web-config"; }
  [[nodiscard]] std::string_view help() const override {
    return "Check web configuration files and the certificates that they name.";
  }
  void add_flags(config::FlagSet& flags) override {
    flags.positionals("web-config-files", files_, "The files to check.");
  }
  Result<int> run(Console& console) override {
    if (files_.empty()) {
      return fail(ErrorCode::kInvalidArgument,
                  "required argument 'web-config-files' not provided, try --help");
    }
    for (const std::string& file : files_) {
      std::error_code code;
      if (!std::filesystem::exists(file, code)) {
        return fail(ErrorCode::kInvalidArgument, "path '{}' does not exist, try --help", file);
      }
    }
    int status = 0;
    for (const std::string& file : files_) {
      const auto checked = check_web_config(file);
      console.say(checked ? fmt::format("{} SUCCESS", file)
                          : fmt::format("{} FAILED: {}", file, checked.error().message));
      status = checked ? status : 1;
    }
    return status;
  }

 private:
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<Command> check_web_config_command() {
  return std::make_unique<CheckWebConfig>();
}

}  // namespace ceems::tool
