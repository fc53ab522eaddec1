#pragma once

// An in-memory Keystone and Nova for the tests of the manager `openstack`.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "ingest/manager/openstack/openstack.h"
#include "testing/fake_clock.h"

namespace ceems::ingest {

inline constexpr model::Window kWindow{.start_ms = 1'767'254'400'000,  // 08:00 UTC
                                       .end_ms = 1'767'258'000'000};

inline net::ClientResponse reply(int status, std::string body, net::Headers headers = {}) {
  return {.status = status, .headers = std::move(headers), .body = std::move(body)};
}

/// An in-memory cloud: tokens tok1, tok2, ..., lists by path. Safe for concurrent use.
class Cloud {
 public:
  using Answer = std::function<Result<net::ClientResponse>(const std::string& url)>;

  Result<net::ClientResponse> get(const std::string& url, const net::Headers& headers) {
    const MutexLock lock(mutex);
    requests.push_back(url);
    const std::string* token = net::find_header(headers, "X-Auth-Token");
    tokens.push_back(token != nullptr ? *token : "");
    if (token == nullptr || refused.contains(*token) || refuse_all) {
      return reply(401, R"({"error":{"message":"no token"}})");
    }
    const std::string path = url.substr(0, url.find('?'));
    const auto found = answers.find(answers.contains(url) ? url : path);
    return found == answers.end() ? reply(404, "{}") : found->second(url);
  }
  Result<net::ClientResponse> post(const std::string& url, const std::string& body) {
    const MutexLock lock(mutex);
    requests.push_back("POST " + url);
    bodies.push_back(body);
    if (token_status != 201) {
      return reply(token_status, R"({"error":{"message":"wrong password"}})");
    }
    return reply(201, token_body, {{"x-subject-token", fmt::format("tok{}", bodies.size())}});
  }
  void set(const std::string& url, std::string body, int status = 200) {
    answers[url] = [body = std::move(body), status](const std::string&) {
      return reply(status, body);
    };
  }
  std::size_t count(std::string_view part) {
    return static_cast<std::size_t>(std::ranges::count_if(
        requests, [part](const auto& url) { return url.find(part) != std::string::npos; }));
  }

  // Tests access the rest without the mutex, between their calls of the manager.
  Mutex mutex;
  std::map<std::string, Answer> answers;
  std::set<std::string> refused;
  bool refuse_all = false;
  int token_status = 201;
  std::string token_body;
  std::vector<std::string> requests, bodies, tokens;
};

class FakeTransport final : public openstack::Transport {
 public:
  explicit FakeTransport(Cloud& cloud) : cloud_(cloud) {}
  Result<net::ClientResponse> get(const std::string& url, const net::Headers& headers) override {
    return cloud_.get(url, headers);
  }
  Result<net::ClientResponse> post(const std::string& url,
                                   const std::string& body,
                                   const net::Headers& /*headers*/) override {
    return cloud_.post(url, body);
  }
  void cancel() override {}

 private:
  Cloud& cloud_;
};

inline std::string server_json(std::string_view id,
                               std::string_view status = "ACTIVE",
                               std::string_view user = "u1",
                               std::string_view project = "p1") {
  return fmt::format(
      R"({{"id":"{}","name":"n-{}","status":"{}","user_id":"{}","tenant_id":"{}","created":"2026-01-01T07:00:00Z",)"
      R"("updated":"2026-01-01T07:00:10Z","OS-SRV-USG:launched_at":"2026-01-01T07:00:10.0",)"
      R"("flavor":{{"vcpus":2,"ram":100,"disk":1,"swap":0,"original_name":"g"}}}})",
      id, id, status, user, project);
}

inline std::string servers_json(const std::vector<std::string>& servers,
                                std::string_view marker = "") {
  std::string links;
  if (!marker.empty()) {
    links = fmt::format(R"(,"servers_links":[{{"rel":"next","href":"http://other/x?marker={}"}}])",
                        marker);
  }
  return fmt::format(R"({{"servers":[{}]{}}})", fmt::join(servers, ","), links);
}

inline std::string named_json(std::string_view key,
                              const std::vector<std::pair<std::string, std::string>>& items) {
  std::vector<std::string> texts;
  for (const auto& [id, name] : items) {
    texts.push_back(fmt::format(R"({{"id":"{}","name":"{}","domain_id":"default"}})", id, name));
  }
  return fmt::format(R"({{"{}":[{}]}})", key, fmt::join(texts, ","));
}

inline const std::string kUsers = "http://key/v3/users";
inline std::string projects_url(std::string_view user) {
  return fmt::format("http://key/v3/users/{}/projects", user);
}
inline constexpr const char* kDetail = "http://nova/v2.1/servers/detail";

struct CloudFixture {
  CloudFixture() {
    cloud.answers[kDetail] = [this](const std::string& url) {
      const bool wants_deleted = url.find("deleted=true") != std::string::npos;
      return reply(200, servers_json(wants_deleted ? deleted : live));
    };
    cloud.set(kUsers, named_json("users", {{"u1", "ann"}, {"u2", "bob"}}));
    cloud.set(projects_url("u1"), named_json("projects", {{"p1", "alpha"}, {"p2", "beta"}}));
    cloud.set(projects_url("u2"), named_json("projects", {{"p1", "alpha"}}));
    options.endpoints = {.identity = "http://key", .compute = {{"", "http://nova/v2.1"}}};
    options.auth = R"({"identity":{}})";
    options.users_refresh_interval = std::chrono::milliseconds(0);
  }
  openstack::Client& client() {
    if (!client_) {
      client_ = std::make_unique<openstack::Client>(options.endpoints, options.auth,
                                                    std::make_unique<FakeTransport>(cloud), clock);
    }
    return *client_;
  }
  ResourceManager& manager() {
    if (!manager_) {
      manager_ =
          make_openstack("os", options, std::make_unique<FakeTransport>(cloud), TimeZone(), clock);
    }
    return *manager_;
  }
  std::map<std::string, std::vector<std::string>> projects() {
    std::map<std::string, std::vector<std::string>> all;
    EXPECT_TRUE(manager().fetch_units(kWindow, {}));
    const auto people = manager().fetch_users_projects(kWindow, {});
    EXPECT_TRUE(people) << people.error().message;
    if (people) {
      for (const auto& user : people->users) {
        all[user.name] = user.projects;
      }
    }
    return all;
  }

  testing::FakeClock clock;
  Cloud cloud;
  std::vector<std::string> live, deleted;
  OpenstackOptions options;

 private:
  std::unique_ptr<openstack::Client> client_;
  std::unique_ptr<ResourceManager> manager_;
};

}  // namespace ceems::ingest
