#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "exporter/emissions/provider.h"
#include "net/client/client.h"

namespace ceems::exporter::emissions {

/// The HTTP client of one emission service. Safe for concurrent use.
class Service {
 public:
  /// `base_variable` is the environment variable that replaces the base URL.
  static Result<std::shared_ptr<Service>> create(const ProviderContext& context,
                                                 const char* base_variable,
                                                 std::string base_url);

  /// Body of `base URL + path` if the status is 200. kPermissionDenied for 401 and 403,
  /// kUnavailable for others. Errors name the path without its query.
  Result<std::string> get(const std::string& path, const net::Headers& headers = {});
  /// Ends calls in progress and makes later ones fail. For shutdown.
  void cancel() { client_->cancel(); }

 private:
  Service(std::string base_url, std::unique_ptr<net::Client> client)
      : base_url_(std::move(base_url)), client_(std::move(client)) {}

  std::string base_url_;
  std::unique_ptr<net::Client> client_;
};

}  // namespace ceems::exporter::emissions
