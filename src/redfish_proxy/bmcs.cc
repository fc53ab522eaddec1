#include "redfish_proxy/bmcs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace ceems::redfish_proxy {
namespace {

/// BMCs serve few connections, and a TLS handshake costs them up to a second.
constexpr std::size_t kMaxKept = 2;
constexpr std::chrono::seconds kKeepFor{15};
constexpr std::chrono::seconds kIdleTimeout{10};  // between pieces of an answer

/// Leaves out the addresses that the rules do not permit.
net::Lookup checked(net::Lookup lookup, AddressRules rules) {
  return [lookup = std::move(lookup), rules = std::move(rules)](
             const std::string& host, const std::string& port) -> Result<net::SocketAddresses> {
    CEEMS_TRY(found, lookup(host, port));
    std::erase_if(found, [&](const auto& address) { return !rules.permit(address.numeric()); });
    if (found.empty()) {
      return fail(ErrorCode::kPermissionDenied,
                  "clients may not name servers with the addresses of this name");
    }
    return found;
  };
}

bool all_permitted(const net::SocketAddresses& addresses, const AddressRules& rules) {
  return std::ranges::all_of(addresses,
                             [&](const auto& address) { return rules.permit(address.numeric()); });
}

}  // namespace

Bmcs::Bmcs(const Config& config, net::Lookup lookup)
    : targets_(config.targets),
      allowed_(config.allowed_targets),
      follows_all_(config.follows_all_headers()),
      tls_(config.client.tls),
      timeout_(config.timeout),
      lookup_(std::move(lookup)) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    by_origin_.try_emplace(targets_[i].url.origin(), i);
    for (const std::string& address : targets_[i].addresses) {
      by_address_.try_emplace(address, i);
    }
  }
}

Result<std::unique_ptr<Bmcs>> Bmcs::create(const Config& config, net::Lookup lookup) {
  std::unique_ptr<Bmcs> bmcs(new Bmcs(config, std::move(lookup)));
  const BmcUrl any{.tls = true, .host = "bmc.invalid", .port = "443", .base_path = {}, .query = {}};
  CEEMS_TRY(bmcs->make_upstream(any, bmcs->tls_, bmcs->lookup_));
  for (std::size_t i = 0; i < config.targets.size(); ++i) {
    if (!config.targets[i].tls) {
      continue;
    }
    CEEMS_TRY_IN(fmt::format("targets[{}]", i), bmcs->of_target(i));
  }
  return bmcs;
}

Result<std::shared_ptr<net::Upstream>> Bmcs::make_upstream(const BmcUrl& url,
                                                           const net::TlsOptions& tls,
                                                           net::Lookup lookup) const {
  net::UpstreamOptions options;
  options.host = url.host;
  options.port = url.port;
  options.lookup = std::move(lookup);
  options.use_tls = url.tls;
  options.tls = tls;
  options.answer_timeout = timeout_;
  options.idle_timeout = kIdleTimeout;
  options.max_kept = kMaxKept;
  options.keep_for = kKeepFor;
  return net::Upstream::create(std::move(options));
}

Result<Bmc> Bmcs::of_target(std::size_t index) {
  const TargetConfig& target = targets_[index];
  const std::string key = std::to_string(index);
  auto upstream = of_targets_.find(key);
  if (!upstream) {
    CEEMS_TRY(made, make_upstream(target.url, target.tls.value_or(tls_), lookup_));
    of_targets_.store(key, made);
    upstream = std::move(made);
  }
  return Bmc{.url = target.url, .upstream = std::move(*upstream), .configured = true};
}

Result<Bmc> Bmcs::of_node(std::string_view address) {
  const auto found = by_address_.find(std::string(address));
  if (found == by_address_.end()) {
    return fail(ErrorCode::kNotFound, "no target is configured for this address");
  }
  return of_target(found->second);
}

Result<Bmc> Bmcs::named(const BmcUrl& url, bool loopback) {
  const std::string origin = url.origin();
  if (const auto found = by_origin_.find(origin); found != by_origin_.end()) {
    return of_target(found->second);
  }
  auto rules = rules_for(allowed_, url);
  if (!rules && follows_all_) {
    rules = AddressRules::all(loopback);
  }
  if (!rules) {
    return fail(ErrorCode::kPermissionDenied,
                "this BMC is neither among targets nor among allowed_targets");
  }
  const std::string key = fmt::format("{} {}", loopback ? "local" : "remote", origin);
  auto upstream = named_.find(key);
  if (!upstream) {
    CEEMS_TRY(made, make_upstream(url, tls_, checked(lookup_, *rules)));
    // A name is checked when it is looked up, a numeric address here.
    const auto known = made->addresses().known();
    if (!made->addresses().is_looked_up() && !all_permitted(*known.list, *rules)) {
      return fail(ErrorCode::kPermissionDenied, "clients may not name a server at this address");
    }
    named_.store(key, made);
    upstream = std::move(made);
  }
  return Bmc{.url = url, .upstream = std::move(*upstream), .configured = false};
}

}  // namespace ceems::redfish_proxy
