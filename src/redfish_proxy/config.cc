#include "redfish_proxy/config.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/log.h"
#include "base/strings.h"
#include "config/section.h"
#include "net/client/client_config.h"

namespace ceems::redfish_proxy {
namespace {

constexpr std::string_view kSessions = "^/redfish/v1/(SessionService/)?Sessions/?$";
constexpr std::string_view kSession = "^/redfish/v1/(SessionService/)?Sessions/[A-Za-z0-9_.-]+/?$";
constexpr std::int64_t kMaxProgramBytes = std::int64_t{1} << 20;

re2::StringPiece piece(std::string_view text) {
  return {text.data(), text.size()};
}

using config::Node;
using config::Section;

constexpr std::string_view kSection = "redfish_proxy";
constexpr std::string_view kOldSection = "redfish_config";
void warn(const Node& node, std::string_view message) {
  log::warn("configuration", {{"key", node.where()}, {"line", node.line()}, {"note", message}});
}

/// `tls_config`, or insecure_skip_verify, which replaces all of it.
Result<net::TlsOptions> read_tls(const Node& node, net::TlsOptions tls) {
  bool skip_verify = false;
  CEEMS_TRY(Section(node).boolean("insecure_skip_verify", skip_verify).done());
  if (skip_verify) {
    warn(node["insecure_skip_verify"],
         "this key is deprecated and replaces all of tls_config; certificates of BMCs are not "
         "checked. Use tls_config.ca_file");
    tls = {};
    tls.insecure_skip_verify = true;
  }
  return tls;
}

Result<> read_addresses(const Node& node, std::vector<std::string>& addresses) {
  std::vector<std::string> texts;
  CEEMS_TRY(Section(node).list("host_ip_addrs", texts).done());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto address = net::canonical_address(texts[i]);
    if (!address) {
      return fail(node["host_ip_addrs"].items().at(i).error(
          fmt::format("expected an IP address, got '{}'", printable(texts[i]))));
    }
    addresses.push_back(std::move(*address));
  }
  return {};
}

Result<> read_target(const Node& node, const std::string& directory, Config& config) {
  TargetConfig target;
  std::string url;
  Section section(node);
  section.only({"host_ip_addrs", "url", "tls_config"})
      .also(read_addresses(node, target.addresses))
      .text("url", url);
  if (!section.ok()) {
    return section.done();
  }
  auto bmc = parse_bmc_url(url);
  if (!bmc) {
    return fail(node["url"].present() ? node["url"].error(bmc.error().message)
                                      : node.error("url is missing, the base URL of the BMC"));
  }
  target.url = std::move(*bmc);
  if (node["tls_config"].present()) {
    CEEMS_TRY(client, net::client_options(node, directory, {"host_ip_addrs", "url"}));
    target.tls = std::move(client.tls);
  }
  config.targets.push_back(std::move(target));
  return {};
}

/// Two BMCs for one node are a mistake that would show only in wrong readings.
Result<> check_addresses(const Node& node, const Config& config) {
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < config.targets.size(); ++i) {
    for (const std::string& address : config.targets[i].addresses) {
      if (!seen.insert(address).second) {
        return fail(node["targets"].items().at(i)["host_ip_addrs"].error(
            fmt::format("{} is already listed above", address)));
      }
    }
  }
  return {};
}

Result<> read_policy(const Node& node, Config& config) {
  std::vector<std::string> resources;
  CEEMS_TRY(Section(node).list("allowed_api_resources", resources).done());
  auto policy = ResourcePolicy::create(resources);
  if (!policy) {
    return fail(node["allowed_api_resources"].error(policy.error().message));
  }
  config.policy = std::move(*policy);
  return {};
}

/// Reads the entries of a list of texts, each with `parse`.
template <typename Entry, typename Parse>
Result<> read_entries(const Node& node,
                      std::string_view key,
                      std::vector<Entry>& entries,
                      const Parse& parse) {
  std::vector<std::string> texts;
  CEEMS_TRY(Section(node).list(key, texts).done());
  entries.clear();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto entry = parse(texts[i]);
    if (!entry) {
      return fail(node[key].items().at(i).error(entry.error().message));
    }
    entries.push_back(std::move(*entry));
  }
  return {};
}

Result<> read_proxies(const Node& node, Config& config) {
  if (!node["trusted_proxies"].present()) {
    config.trusted_proxies.ranges = {*net::Cidr::parse("127.0.0.0/8"), *net::Cidr::parse("::1")};
    return {};
  }
  return read_entries(node, "trusted_proxies", config.trusted_proxies.ranges, net::Cidr::parse);
}

Result<> read_client(const Node& node, const std::string& directory, Config& config) {
  CEEMS_TRY(client,
            net::client_options(
                node, directory,
                {"targets", "allowed_targets", "allowed_api_resources", "allowed_query_options",
                 "trusted_proxies", "remember", "timeout", "max_requests_per_client",
                 "max_request_rate_per_client", "insecure_skip_verify", "web"}));
  if (!client.proxy_url.empty() || client.proxy_from_environment) {
    return fail(node.error("a BMC cannot be reached through another proxy"));
  }
  config.client = std::move(client);
  CEEMS_TRY(tls, read_tls(node, std::move(config.client.tls)));
  config.client.tls = std::move(tls);
  return {};
}

Result<> read_section(const Node& node, const std::string& directory, Config& config) {
  constexpr std::chrono::hours kMaxRemember{24 * 7};
  constexpr std::chrono::minutes kMaxTimeout{10};
  constexpr std::int64_t kMaxPerClient = 10'000;
  constexpr std::int64_t kMaxRate = 1'000'000;
  if (node["web"].present()) {
    warn(node["web"], "this section has no effect; use --web.listen-address and --web.config.file");
  }
  return Section(node)
      .also(read_client(node, directory, config))
      .each("targets", [&](const Node& item) { return read_target(item, directory, config); })
      .also(read_policy(node, config))
      .also(read_entries(node, "allowed_targets", config.allowed_targets, AllowedTarget::parse))
      .list("allowed_query_options", config.allowed_query_options)
      .also(read_proxies(node, config))
      .duration("remember", config.remember)
      .refuse(config.remember > kMaxRemember || config.remember.count() < 0, "remember",
              "expected 0s (off) to 7d")
      .duration("timeout", config.timeout)
      .refuse(config.timeout < std::chrono::seconds(1) || config.timeout > kMaxTimeout, "timeout",
              "expected 1s to 10m")
      .integer("max_requests_per_client", config.max_requests_per_client)
      .refuse(config.max_requests_per_client < 1 || config.max_requests_per_client > kMaxPerClient,
              "max_requests_per_client", "expected 1 to 10000")
      .integer("max_request_rate_per_client", config.max_request_rate_per_client)
      .refuse(
          config.max_request_rate_per_client < 0 || config.max_request_rate_per_client > kMaxRate,
          "max_request_rate_per_client", "expected 0 (no limit) to 1000000")
      .done();
}

}  // namespace

struct ResourcePolicy::Impl {
  std::vector<std::unique_ptr<RE2>> resources;
  RE2 sessions{piece(kSessions)};
  RE2 session{piece(kSession)};
};

ResourcePolicy::ResourcePolicy(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ResourcePolicy::~ResourcePolicy() = default;

Result<std::shared_ptr<const ResourcePolicy>> ResourcePolicy::create(
    const std::vector<std::string>& resources) {
  auto impl = std::make_unique<Impl>();
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxProgramBytes);
  for (const std::string& text : resources.empty() ? default_resources() : resources) {
    auto expression = std::make_unique<RE2>(text, options);
    if (!expression->ok()) {
      return fail(ErrorCode::kInvalidArgument, "invalid regular expression '{}': {}", text,
                  expression->error());
    }
    impl->resources.push_back(std::move(expression));
  }
  return std::shared_ptr<const ResourcePolicy>(new ResourcePolicy(std::move(impl)));
}

ResourcePolicy::Verdict ResourcePolicy::check(std::string_view method,
                                              std::string_view path) const {
  const auto matches = [path](const RE2& expression) {
    return RE2::PartialMatch(piece(path), expression);
  };
  bool allowed = false;
  for (const auto& expression : impl_->resources) {
    allowed = allowed || matches(*expression);
  }
  if (!allowed) {
    return Verdict::kPathRefused;
  }
  const bool method_allowed = method == "GET" || method == "HEAD" ||
                              (method == "POST" && matches(impl_->sessions)) ||
                              (method == "DELETE" && matches(impl_->session));
  return method_allowed ? Verdict::kAllowed : Verdict::kMethodRefused;
}

std::vector<std::string> default_resources() {
  // The ids of some vendors contain dots, such as System.Embedded.1, and the links of others end
  // with a slash. Paths are clean, so an id is never "..".
  return {"^/redfish/v1/$",
          "^/redfish/v1/Sessions$",
          "^/redfish/v1/Sessions/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/SessionService/Sessions$",
          "^/redfish/v1/SessionService/Sessions/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Power/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/EnvironmentMetrics/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/PowerSupplies/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/PowerSubsystem/PowerSupplies/[A-Za-z0-9_.-]*/?$",
          "^/redfish/v1/Chassis/[\\w.-]*/PowerSubsystem/PowerSupplies/[\\w.-]*/Metrics/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Sensors/?$",
          "^/redfish/v1/Chassis/[A-Za-z0-9_.-]*/Sensors/[A-Za-z0-9_.-]*/?$"};
}

Result<Config> parse_config(const Node& document, const std::string& directory) {
  CEEMS_TRY(Section(document).only(config::kTopLevelKeys).done());
  Node section = document[kSection];
  if (!section.present() && document[kOldSection].present()) {
    section = document[kOldSection];
    warn(section, "this section is deprecated, rename it to redfish_proxy");
  }
  Config config;
  auto done = read_section(section, directory, config);
  if (done) {
    done = check_addresses(section, config);
  }
  if (!done) {
    return fail(std::move(done).error());
  }
  return config;
}

}  // namespace ceems::redfish_proxy
