#include <fmt/format.h>

#include "base/strings.h"
#include "tool/command.h"
#include "tool/connection.h"

namespace ceems::tool {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{10};

/// Asks a server for its health.
class HealthCommand : public Command {
 public:
  explicit HealthCommand(std::string url) { server_.url = std::move(url); }

 protected:
  Result<int> ask(Console& console, const net::Headers& headers) {
    CEEMS_TRY(address, server_.address());
    CEEMS_TRY(client, server_.client(kAnswerTimeout));
    CEEMS_TRY_IN("check failed", response, client->get(address + "/health", headers));
    if (response.status != 200) {
      std::string shown = address;  // never with a password
      if (const auto at = shown.rfind('@'); at != std::string::npos) {
        shown = shown.substr(0, shown.find("://") + 3) + shown.substr(at + 1);
      }
      return fail(ErrorCode::kUnavailable, "check failed: URL={}/health, status={}", shown,
                  response.status);
    }
    console.say(fmt::format("  SUCCESS:  {}", printable(trim(response.body), 1000)));
    return 0;
  }

  ServerFlags server_;
};

class CheckApi final : public HealthCommand {
 public:
  CheckApi() : HealthCommand("http://localhost:9020") {}
  [[nodiscard]] std::string_view words() const override { return "check api-healthy"; }
  [[nodiscard]] std::string_view help() const override {
    return "Ask ceems_api_server whether it is healthy.";
  }
  void add_flags(config::FlagSet& flags) override { server_.add(flags, "ceems_api_server"); }
  Result<int> run(Console& console) override { return ask(console, {}); }
};

class CheckLb final : public HealthCommand {
 public:
  CheckLb() : HealthCommand("http://localhost:9030") {}
  [[nodiscard]] std::string_view words() const override { return "check lb-healthy"; }
  [[nodiscard]] std::string_view help() const override {
    return "Ask ceems_lb whether it is healthy, as a user of a cluster would.";
  }
  void add_flags(config::FlagSet& flags) override {
    server_.add(flags, "ceems_lb");
    flags.add("cluster-id", cluster_,
              {.help = "Cluster to ask for, sent as X-Ceems-Cluster-Id.", .placeholder = "ID"});
    flags.add("user", user_,
              {.help = "User to ask as, sent as X-Grafana-User.", .placeholder = "NAME"});
  }
  Result<int> run(Console& console) override {
    net::Headers headers;
    if (!cluster_.empty()) {
      headers.emplace_back("X-Ceems-Cluster-Id", cluster_);
    }
    if (!user_.empty()) {
      headers.emplace_back("X-Grafana-User", user_);
    }
    return ask(console, headers);
  }

 private:
  std::string cluster_;
  std::string user_;
};

}  // namespace

std::unique_ptr<Command> check_api_command() {
  return std::make_unique<CheckApi>();
}

std::unique_ptr<Command> check_lb_command() {
  return std::make_unique<CheckLb>();
}

}  // namespace ceems::tool
