#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "net/server/server.h"

namespace ceems::exporter::redfish {

/// A Redfish service for tests with two chassis and login by token. Tests replace its answers.
class MockService {
 public:
  struct Answer {
    int status = 200;
    std::string body{};
    net::Headers headers{};
  };

  MockService() {
    set("/redfish/v1/", {.body = R"({"Chassis":{"@odata.id":"/redfish/v1/Chassis"},
                     "Links":{"Sessions":{"@odata.id":"/redfish/v1/Sessions"}}})"});
    set("/redfish/v1/Chassis", {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Node-1"},
                                {"@odata.id":"/redfish/v1/Chassis/Tray"}]})"});
    set_chassis("Node-1",
                R"("Links":{"ComputerSystems":[{"@odata.id":"/redfish/v1/Systems/1"}]},)");
    set_chassis("Tray", "");
    set_power("Node-1", 400.25);
    set_power("Tray", 900);
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    options.threads = 2;
    server_ = *net::Server::create(std::move(options),
                                   [this](const net::Request& request, net::Response& response) {
                                     handle(request, response);
                                   });
    server_->start();
  }
  ~MockService() {
    release();
    server_->stop(std::chrono::milliseconds(100));
  }
  MockService(const MockService&) = delete;
  MockService& operator=(const MockService&) = delete;

  void set(const std::string& path, Answer answer) {
    const MutexLock lock(mutex_);
    answers_[path] = std::move(answer);
  }
  void set_chassis(const std::string& name, const std::string& more) {
    set("/redfish/v1/Chassis/" + name,
        {.body = fmt::format(
             R"({{"Id":"{0}",{1}"Power":{{"@odata.id":"/redfish/v1/Chassis/{0}/Power"}}}})", name,
             more)});
  }
  void set_power(const std::string& name, double watts) {
    set("/redfish/v1/Chassis/" + name + "/Power",
        {.body = fmt::format(R"({{"PowerControl":[{{"MemberId":0,"PowerConsumedWatts":{},
             "PowerMetrics":{{"MinConsumedWatts":10,"MaxConsumedWatts":null}}}}]}})",
                             watts)});
  }
  /// From now on every path except the service root requires a token, and tokens given so far are
  /// invalid.
  void expire_tokens() {
    const MutexLock lock(mutex_);
    need_token_ = true;
    token_ = "none";
  }
  /// Refuses every request with a token, whatever the token.
  void refuse_tokens() {
    const MutexLock lock(mutex_);
    refuse_ = true;
  }
  void refuse_logins() {
    const MutexLock lock(mutex_);
    refuse_logins_ = true;
  }
  /// Delays the answers to requests for this path until release().
  void hang(const std::string& path) {
    const MutexLock lock(mutex_);
    hanging_ = path;
  }
  void release() {
    {
      const MutexLock lock(mutex_);
      hanging_.clear();
    }
    released_.notify_all();
  }

  [[nodiscard]] std::string url() const { return "http://" + address(); }
  [[nodiscard]] std::string address() const { return server_->addresses()[0]; }
  [[nodiscard]] std::string port() const { return address().substr(address().rfind(':') + 1); }
  /// "METHOD target" of all requests so far.
  [[nodiscard]] std::vector<std::string> requests() const {
    const MutexLock lock(mutex_);
    return requests_;
  }
  [[nodiscard]] std::ptrdiff_t count(const std::string& request) const {
    const auto all = requests();
    return std::ranges::count(all, request);
  }
  /// Header of the last request; "-" if it had none.
  [[nodiscard]] std::string last_header(std::string_view name) const {
    const MutexLock lock(mutex_);
    const std::string* value = net::find_header(last_headers_, name);
    return value == nullptr ? "-" : *value;
  }
  [[nodiscard]] std::string last_login() const {
    const MutexLock lock(mutex_);
    return login_;
  }

 private:
  void handle(const net::Request& request, net::Response& response) {
    MutexLock lock(mutex_);
    requests_.push_back(request.method + " " + request.target);
    last_headers_ = request.headers;
    released_.wait(lock, [&]() CEEMS_REQUIRES(mutex_) {
      return hanging_.empty() || hanging_ != request.path;
    });
    if (request.method == "DELETE") {
      response.status = 204;
      return;
    }
    if (request.method == "POST") {
      login_ = request.body;
      if (refuse_logins_) {
        response.status = 401;
        return;
      }
      response.status = 201;
      token_ = fmt::format("token{}", ++tokens_);
      response.set_header("X-Auth-Token", token_);
      response.set_header("Location",
                          fmt::format("{}/redfish/v1/Sessions/{}", "https://bmc", tokens_));
      return;
    }
    const std::string* token = net::find_header(request.headers, "X-Auth-Token");
    const bool power = request.path.ends_with("/Power");
    if ((refuse_ && power) ||
        (need_token_ && request.path != "/redfish/v1/" && (token == nullptr || *token != token_))) {
      response.status = 401;
      return;
    }
    const auto found = answers_.find(request.target);
    if (found == answers_.end()) {
      response.status = 404;
      return;
    }
    response.status = found->second.status;
    response.body = found->second.body;
    for (const auto& [name, value] : found->second.headers) {
      response.set_header(name, value);
    }
  }

  mutable Mutex mutex_;
  Condition released_;
  std::map<std::string, Answer> answers_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ CEEMS_GUARDED_BY(mutex_);
  net::Headers last_headers_ CEEMS_GUARDED_BY(mutex_);
  std::string login_ CEEMS_GUARDED_BY(mutex_);
  std::string token_ CEEMS_GUARDED_BY(mutex_);
  std::string hanging_ CEEMS_GUARDED_BY(mutex_);
  int tokens_ CEEMS_GUARDED_BY(mutex_) = 0;
  bool need_token_ CEEMS_GUARDED_BY(mutex_) = false;
  bool refuse_ CEEMS_GUARDED_BY(mutex_) = false;
  bool refuse_logins_ CEEMS_GUARDED_BY(mutex_) = false;
  std::unique_ptr<net::Server> server_;
};

}  // namespace ceems::exporter::redfish
