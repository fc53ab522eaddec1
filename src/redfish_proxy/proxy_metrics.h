#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "metrics/registry.h"
#include "net/relay/relay.h"
#include "net/server/server.h"

namespace ceems::redfish_proxy {

/// What became of a request.
enum class Outcome : std::uint8_t {
  kAnswered,       ///< the BMC answered, with whatever status
  kPathRefused,    ///< 401
  kMethodRefused,  ///< 405
  kNoTarget,       ///< 400: the client has no BMC and named none
  kBadHeader,      ///< 400: X-Redfish-Url is not the URL of a server
  kTargetRefused,  ///< 400: the client named a BMC that it may not name
  kTooMany,        ///< 429: the client has too many requests under way
  kTooFast,        ///< 429: the client sends too many requests in a second
  kBusy,           ///< 503: the BMC has too many requests under way
  kUnreachable,    ///< 400: no connection, or a broken answer
  kTimeout,        ///< 504: no answer in time
  kBroken,         ///< the answer broke off
  kClientGone,     ///< the client left first
};
std::string_view to_string(Outcome outcome);

/// The metrics of redfish_proxy (docs/redfish-proxy.md). Safe for concurrent use.
class ProxyMetrics {
 public:
  ProxyMetrics();

  void count(Outcome outcome) { requests_.with({to_string(outcome)}).add(); }
  void count_dropped(net::Dropped what) { dropped_.with({net::to_string(what)}).add(); }
  /// For net::ServerOptions::on_certificate.
  [[nodiscard]] std::function<void(std::int64_t)> on_certificate();
  /// `seconds` is the time from the request to the end of the answer.
  void count_end(const net::RelayEnd& end, double seconds);

  /// The page in the text format 0.0.4.
  [[nodiscard]] std::string page(std::size_t targets, std::size_t in_flight);

 private:
  metrics::Registry registry_{"redfish_proxy", "the proxy"};
  metrics::Family<metrics::Counter>& requests_;
  metrics::Family<metrics::Counter>& answers_;
  metrics::Family<metrics::Counter>& dropped_;
  metrics::Family<metrics::Histogram>& durations_;
};

}  // namespace ceems::redfish_proxy
