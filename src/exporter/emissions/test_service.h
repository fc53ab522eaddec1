#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "exporter/emissions/provider.h"
#include "net/server/server.h"

namespace ceems::exporter::emissions {

/// An HTTP server on the loopback interface that stands in for an emission service and records its
/// requests. For tests.
class TestService {
 public:
  explicit TestService(net::Handler handler) {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    server_ = *net::Server::create(
        std::move(options),
        [this, answer = std::move(handler)](const net::Request& request, net::Response& response) {
          {
            const MutexLock lock(mutex_);
            requests_.push_back(request);
          }
          answer(request, response);
        });
    server_->start();
  }

  [[nodiscard]] std::string url() const { return "http://" + server_->addresses()[0]; }
  [[nodiscard]] std::vector<net::Request> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<net::Request> requests_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;
};

/// An environment with these variables.
inline Environment environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found != variables.end() ? std::optional(found->second) : std::nullopt;
  };
}

}  // namespace ceems::exporter::emissions
