#include "tool/command.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/clock.h"
#include "tool/connection.h"
#include "tool/site/examine.h"

namespace ceems::tool {
namespace {

constexpr std::chrono::seconds kTimeout{5};

class CheckSite final : public Command {
 public:
  CheckSite() { server_.url = "http://localhost:9090"; }
  [[nodiscard]] std::string_view words() const override { return "check site"; }
  [[nodiscard]] std::string_view help() const override {
    return "Ask Prometheus, the exporters, the API server and the load balancer what is not "
           "connected, not scraped, out of date or without a password.";
  }
  void add_flags(config::FlagSet& flags) override {
    server_.add(flags, "Prometheus");
    api_.add(flags, "ceems_api_server; without it, it is not examined", "api.");
    flags.add("api.user", api_user_,
              {.help = "Admin of ceems_api_server in whose name the energy of jobs is compared "
                       "with SLURM's ConsumedEnergy; empty: it is not.",
               .placeholder = "NAME"});
    lb_.add(flags, "ceems_lb; without it, it is not examined", "lb.");
    flags.add(
        "lb.cluster-id", lb_cluster_,
        {.help = "Cluster whose series are asked for through ceems_lb, to see whether it lets "
                 "a stranger read them.",
         .placeholder = "ID"});
    flags.add("max-exporters", max_exporters_,
              {.help = "Number of exporters that are asked whether they answer without a password; "
                       "0: none."});
    flags.add("json", json_, {.help = "Print the findings as JSON."});
  }
  Result<int> run(Console& console) override {
    CEEMS_TRY(connection, TsdbConnection::open(server_));
    const auto api = api_.client(kTimeout);
    const auto lb = lb_.client(kTimeout);
    for (const auto* client : {&api, &lb}) {
      if (!*client) {
        return fail(client->error());
      }
    }
    for (const ServerFlags* flags : {&server_, &api_, &lb_}) {
      CEEMS_TRY(flags->address());
    }
    net::ClientOptions bare;
    bare.timeout = kTimeout;
    bare.connect_timeout = kTimeout;
    bare.tls.insecure_skip_verify = true;  // no secret is sent
    bare.user_agent = "ceems_tool check site";
    CEEMS_TRY(stranger, net::Client::create(std::move(bare)));
    const auto findings =
        examine_site({.tsdb = &connection->client(),
                      .stranger = stranger.get(),
                      .api = (*api).get(),
                      .lb = (*lb).get(),
                      .tsdb_url = *server_.address(),
                      .api_url = api_.url.empty() ? "" : *api_.address(),
                      .api_user = api_user_,
                      .lb_url = lb_.url.empty() ? "" : *lb_.address(),
                      .lb_cluster = lb_cluster_,
                      .max_exporters = static_cast<std::size_t>(std::max(0L, max_exporters_)),
                      .now_ms = real_clock().now_ms()});
    console.print(json_ ? findings_json(findings) + "\n" : findings_text(findings));
    return findings_status(findings);
  }

 private:
  ServerFlags server_;
  ServerFlags api_;
  ServerFlags lb_;
  std::string api_user_;
  std::string lb_cluster_;
  long max_exporters_ = 20;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> check_site_command() {
  return std::make_unique<CheckSite>();
}

}  // namespace ceems::tool
