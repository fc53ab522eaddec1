#include "lb/service.h"

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/testing/test_client.h"
#include "store/database.h"
#include "store/factory/open_database.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::lb {
namespace {

using gate::BackendType;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::eventually;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A TSDB or Pyroscope that remembers the last request, and answers once it may.
class FakeBackend {
 public:
  FakeBackend() {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    options.threads = 8;
    options.max_body_bytes = std::size_t{64} << 20U;
    server_ = *net::Server::create(
        std::move(options), [this](const net::Request& request, net::Response& response) {
          (request.path == "/-/healthy" ? health_requests : requests) += 1;
          {
            const MutexLock lock(mutex_);
            last_ = request.target + (request.body.empty() ? "" : " " + request.body);
          }
          EXPECT_TRUE(eventually([this] { return !hangs; }));
          response.body = body;
        });
    server_->start();
  }
  [[nodiscard]] std::string address() const { return server_->addresses()[0]; }
  [[nodiscard]] std::string url() const { return "http://" + address(); }
  /// Target and body of the last request.
  [[nodiscard]] std::string last() {
    const MutexLock lock(mutex_);
    return last_;
  }

  std::atomic<int> requests = 0;
  std::atomic<int> health_requests = 0;
  std::atomic<bool> hangs = false;
  std::string body = "answer";  ///< to be set before the first request

 private:
  Mutex mutex_;
  std::string last_ CEEMS_GUARDED_BY(mutex_);
  std::unique_ptr<net::Server> server_;
};

ServiceOptions options_with(std::size_t listeners) {
  ServiceOptions options;
  options.listen_addresses.assign(listeners, "127.0.0.1:0");
  // Probes at the start and on reload only, so that tests say when.
  options.health.interval = std::chrono::hours(1);
  options.health.retry_interval = milliseconds(5);
  options.health.silence = std::chrono::hours(1);
  options.matchers = milliseconds(0);
  return options;
}

/// Cluster c with one TSDB, and a Pyroscope unless `profiles` is empty. No source of owners.
Config config_with(const std::string& tsdb, const std::string& profiles = "") {
  ClusterConfig cluster{.id = "c"};
  if (!tsdb.empty()) {
    cluster.tsdb.push_back({.url = tsdb});
  }
  if (!profiles.empty()) {
    cluster.profiles.push_back({.url = profiles});
  }
  Config config;
  config.clusters.push_back(std::move(cluster));
  return config;
}

std::unique_ptr<Service> made(const ServiceOptions& options, const Config& config) {
  auto service = Service::create(options, config);
  EXPECT_TRUE(service) << service.error().message;
  return std::move(*service);
}

std::string refusal(const Result<>& result) {
  return result ? "accepted" : result.error().message;
}

std::string creation(const ServiceOptions& options, const Config& config) {
  const auto service = Service::create(options, config);
  return service ? "created" : service.error().message;
}

/// "127.0.0.1:9030" of "tsdb 127.0.0.1:9030".
std::string address_of(const Service& service, std::size_t listener = 0) {
  const std::string text = service.listeners().at(listener);
  return text.substr(text.find(' ') + 1);
}

net::RawAnswer ask(const Service& service,
                   const std::string& target = "/api/v1/query?query=1",
                   const std::string& user = "alice") {
  return net::raw_get(address_of(service), target,
                      {{"X-Ceems-Cluster-Id", "c"}, {"X-Grafana-User", user}});
}

std::vector<std::string> targets_of(Service& service) {
  std::vector<std::string> all;
  for (const HealthTarget& target : service.health_targets()) {
    all.push_back(target.upstream->address());
  }
  return all;
}

TEST(BackendTypes, ComeInTheOrderInWhichTheyFirstAppear) {
  const auto types = [](const Config& config) {
    std::string text;
    for (const BackendType type : backend_types(config)) {
      text += std::string(gate::type_name(type)) + " ";
    }
    return text;
  };
  EXPECT_EQ(types({}), "");
  EXPECT_EQ(types(config_with("http://a")), "tsdb ");
  EXPECT_EQ(types(config_with("", "http://a")), "pyroscope ");
  EXPECT_EQ(types(config_with("http://a", "http://b")), "tsdb pyroscope ");
  Config mixed = config_with("", "http://a");
  mixed.clusters.push_back(config_with("http://b", "http://c").clusters[0]);
  EXPECT_EQ(types(mixed), "pyroscope tsdb ");
}

TEST(Service, HasOneListenerForEachType) {
  const Config config = config_with("http://127.0.0.1:1", "http://127.0.0.1:1");
  EXPECT_EQ(creation(options_with(0), config),
            "insufficient --web.listen-address. Expected 2 got 0");
  EXPECT_EQ(creation(options_with(1), config),
            "insufficient --web.listen-address. Expected 2 got 1");
  for (const std::size_t count : {2U, 3U}) {
    const auto service = made(options_with(count), config);
    const auto listeners = service->listeners();
    ASSERT_EQ(listeners.size(), 2U);
    EXPECT_THAT(listeners[0], StartsWith("tsdb 127.0.0.1:"));
    EXPECT_THAT(listeners[1], StartsWith("pyroscope 127.0.0.1:"));
  }
  EXPECT_EQ(made(options_with(0), {})->listeners(), std::vector<std::string>{});
}

TEST(Service, SocketsOfSystemdAreForOneType) {
  ServiceOptions options = options_with(2);
  options.systemd_socket = true;
  EXPECT_EQ(creation(options, config_with("http://a", "http://b")),
            "--web.systemd-socket is for one type of backends; the configuration has 2");
  EXPECT_THAT(creation(options, config_with("http://a")), HasSubstr("systemd"))
      << "there are none in this test, but one type is fine";
}

TEST(Service, APortInUseIsAnError) {
  const auto service = made(options_with(1), config_with("http://a"));
  ServiceOptions options = options_with(1);
  options.listen_addresses = {address_of(*service)};
  EXPECT_THAT(creation(options, config_with("http://a")), HasSubstr(address_of(*service)));
}

TEST(Service, WarnsThatThereIsNoAccessControl) {
  FakeBackend backend;
  const Config config = config_with(backend.url());
  const auto service = made(options_with(1), config);
  ::testing::internal::CaptureStderr();
  const auto applied = service->apply(config);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_THAT(log, HasSubstr("access control is OFF"));
  service->start();
  EXPECT_EQ(ask(*service, "/api/v1/admin/anything", "").body, "answer");
  EXPECT_EQ(backend.last(), "/api/v1/admin/anything");
}

TEST(Service, TypesOfBackendsDoNotChangeOnReload) {
  const std::string url = "http://127.0.0.1:1";
  const auto both = made(options_with(2), config_with(url, url));
  ASSERT_TRUE(both->apply(config_with(url, url)));
  Config swapped = config_with("", url);
  swapped.clusters.push_back({.id = "d", .tsdb = {{.url = url}}});
  for (const Config& config : {config_with(url), config_with("", url), swapped, Config{}}) {
    const auto applied = both->apply(config);
    EXPECT_THAT(refusal(applied), HasSubstr("requires a restart"));
    EXPECT_EQ(applied.error().code, ErrorCode::kInvalidArgument);
  }
  const auto one = made(options_with(1), config_with(url));
  EXPECT_THAT(refusal(one->apply(config_with(url, url))), HasSubstr("requires a restart"));
  EXPECT_EQ(refusal(one->apply(config_with("http://127.0.0.1:2"))), "accepted");
}

TEST(Service, UnchangedBackendsStayInUseOnReload) {
  const Config config = config_with("http://127.0.0.1:1");
  const auto service = made(options_with(1), config);
  ASSERT_TRUE(service->apply(config));
  const auto before = service->health_targets().at(0).upstream;
  ASSERT_TRUE(service->apply(config));
  const auto after = service->health_targets();
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].upstream, before);
}

TEST(Service, ReloadedBackendsAreProbedAtOnce) {
  FakeBackend backend;
  Config config = config_with("http://127.0.0.1:1");
  const auto service = made(options_with(1), config);
  ASSERT_TRUE(service->apply(config));
  service->start();
  const auto dead = service->health_targets().at(0).upstream;
  EXPECT_TRUE(eventually([&] { return !dead->alive(); }));
  config.clusters[0].tsdb.push_back({.url = "http://127.0.0.1:2"});
  ASSERT_TRUE(service->apply(config));
  const auto targets = service->health_targets();
  ASSERT_EQ(targets.size(), 2U);
  EXPECT_TRUE(eventually([&] { return !targets[1].upstream->alive(); }));
}

TEST(Service, DrainingBackendsLiveUntilTheirLastRequest) {
  FakeBackend old;
  FakeBackend next;
  old.hangs = true;
  const auto service = made(options_with(1), config_with(old.url()));
  ASSERT_TRUE(service->apply(config_with(old.url())));
  service->start();
  net::RawAnswer answer;
  std::jthread client([&] { answer = ask(*service); });
  ASSERT_TRUE(eventually([&] { return old.requests == 1; }));
  const std::weak_ptr<net::Upstream> drained = service->health_targets().at(0).upstream;

  ASSERT_TRUE(service->apply(config_with(next.url())));
  EXPECT_EQ(targets_of(*service), (std::vector<std::string>{next.address(), old.address()}));
  EXPECT_EQ(ask(*service).body, "answer");
  EXPECT_EQ(next.requests, 1);
  // One more reload does not lose it, nor list anything twice.
  ASSERT_TRUE(service->apply(config_with(next.url())));
  EXPECT_EQ(targets_of(*service), (std::vector<std::string>{next.address(), old.address()}));

  old.hangs = false;
  client.join();
  EXPECT_EQ(answer.body, "answer");
  EXPECT_TRUE(eventually([&] { return targets_of(*service).size() == 1; }));
  EXPECT_EQ(targets_of(*service), std::vector<std::string>{next.address()});
  EXPECT_TRUE(eventually([&] { return drained.expired(); }));
  EXPECT_EQ(old.requests, 1);
}

TEST(Service, StopsInTheMidstOfRequestsAndHealthRequests) {
  FakeBackend backend;
  backend.hangs = true;
  ServiceOptions options = options_with(1);
  options.health.silence = milliseconds(1);
  const Config config = config_with(backend.url());
  auto service = made(options, config);
  ASSERT_TRUE(service->apply(config));
  service->start();
  const std::string address = address_of(*service);
  net::RawAnswer answer;
  std::jthread client([&] { answer = ask(*service); });
  ASSERT_TRUE(eventually([&] { return backend.health_requests > 0; }));
  const auto before = steady_clock::now();
  service->stop(milliseconds(20));
  EXPECT_LT(steady_clock::now() - before, std::chrono::seconds(9))
      << "10 s if it was not cancelled";
  client.join();
  EXPECT_FALSE(answer.complete);
  EXPECT_FALSE(net::RawConnection(address).connected());
  EXPECT_EQ(service->listeners(), std::vector<std::string>{});
  service->stop();
  backend.hangs = false;
}

TEST(Service, HealthAndMetricsDoNotWaitForOwners) {
  FakeBackend backend;
  FakeBackend api;  // it hangs once the clusters are known
  api.body = R"({"status":"success","data":[{"id":"c"}]})";
  Config config = config_with(backend.url());
  config.api_url = api.url();
  const auto service = made(options_with(1), config);
  ASSERT_TRUE(service->apply(config));
  service->start();
  api.hangs = true;
  const std::string address = address_of(*service);
  std::vector<std::unique_ptr<net::RawConnection>> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(std::make_unique<net::RawConnection>(address));
    clients.back()->send(
        "GET /api/v1/query?query=x HTTP/1.1\r\nHost: x\r\nX-Ceems-Cluster-Id: c\r\n"
        "X-Grafana-User: user" +
        std::to_string(i) + "\r\n\r\n");
  }
  ASSERT_TRUE(eventually([&] { return api.requests > 1; }));
  EXPECT_EQ(net::raw_get(address, "/-/healthy").status, 200);
  EXPECT_THAT(net::raw_get(address, "/metrics").body, HasSubstr("ceems_lb_build_info"));
  for (const auto& client : clients) {
    EXPECT_EQ(client->answer().status, 403);
  }
  EXPECT_LE(api.requests, 1 + 2) << "the clusters, and one question of each worker";
  api.hangs = false;
}

/// alice owns unit 1 of cluster c, whose id was that of a unit of bob's some days before.
class GuardedServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto now = std::chrono::duration_cast<milliseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    constexpr std::int64_t kDay = 86'400'000;
    const ceems::testing::FakeClock clock;
    auto database =
        store::open_database({.directory = directory_.path().string(), .time_zone = "UTC"}, clock);
    ASSERT_TRUE(database) << database.error().message;
    store::ClusterUpdate update;
    update.cluster = {.id = "c", .manager = "slurm", .updaters = {}};
    update.window = {now - 10 * kDay, now};
    update.units = {unit("optics", "bob", now - 9 * kDay, now - 8 * kDay),
                    unit("fluids", "alice", now - kDay, 0)};
    update.projects = std::vector<model::Project>{{.name = "fluids", .users = {"alice"}},
                                                  {.name = "optics", .users = {"bob"}}};
    const auto written = (*database)->writer().write(update);
    ASSERT_TRUE(written) << written.error().message;
    ASSERT_EQ(written->written, 2U);
    config_ = config_with(backend_.url());
    config_.data_path = directory_.path().string();
  }
  static model::Unit unit(const std::string& project,
                          const std::string& user,
                          std::int64_t started_ms,
                          std::int64_t ended_ms) {
    model::Unit made;
    made.resource_manager = "slurm";
    made.uuid = "1";
    made.name = "1";
    made.project = project;
    made.username = user;
    made.created_at_ts = started_ms;
    made.started_at_ts = started_ms;
    made.started_at = std::to_string(started_ms);
    made.ended_at_ts = ended_ms;
    made.state = ended_ms == 0 ? "RUNNING" : "COMPLETED";
    return made;
  }
  void start() {
    service_ = made(options_with(1), config_);
    const auto applied = service_->apply(config_);
    ASSERT_TRUE(applied) << applied.error().message;
    service_->start();
  }
  /// What the backend is asked for, or the status of the refusal.
  std::string forwarded(const std::string& target) {
    const auto answer = ask(*service_, target);
    return answer.status == 200 ? backend_.last() : std::to_string(answer.status);
  }
  std::string forwarded_with(const AccessConfig& access, const std::string& target) {
    config_.access = access;
    const auto applied = service_->apply(config_);
    EXPECT_TRUE(applied) << applied.error().message;
    return forwarded(target);
  }

  ceems::testing::TempDir directory_;
  FakeBackend backend_;
  Config config_;
  std::unique_ptr<Service> service_;
};

constexpr const char* kOwnTarget = "/api/v1/query?query=x%7Buuid%3D%221%22%7D";

TEST_F(GuardedServiceTest, AnyErrorOfAReloadKeepsWhatIsInUse) {
  start();
  ASSERT_EQ(forwarded(kOwnTarget), kOwnTarget);
  const auto upstream = service_->health_targets().at(0).upstream;
  Config unreadable = config_;
  unreadable.data_path = directory_.path().string() + "/none";
  Config unknown_cluster = config_;
  unknown_cluster.clusters[0].id = "other";
  Config bad_url = config_;
  bad_url.clusters[0].tsdb[0].url = "ftp://a";
  Config bad_second = config_;
  bad_second.clusters[0].tsdb = {{.url = "http://127.0.0.1:1"}, {.url = "http://"}};
  Config other_types = config_;
  other_types.clusters[0].profiles.push_back({.url = "http://127.0.0.1:1"});
  for (const auto& [config, part] : {std::pair(unreadable, "database of unit owners"),
                                     {unknown_cluster, "unknown cluster ID: other"},
                                     {bad_url, "backend of c"},
                                     {bad_second, "backend of c"},
                                     {other_types, "requires a restart"}}) {
    EXPECT_THAT(refusal(service_->apply(config)), HasSubstr(part));
    EXPECT_EQ(forwarded(kOwnTarget), kOwnTarget) << part;
    EXPECT_EQ(forwarded("/api/v1/query?query=up"), "403") << part;
    const auto targets = service_->health_targets();
    ASSERT_EQ(targets.size(), 1U) << part;
    EXPECT_EQ(targets[0].upstream, upstream) << part;
  }
}

TEST_F(GuardedServiceTest, DoesNotWarnWhereThereIsAccessControl) {
  service_ = made(options_with(1), config_);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(service_->apply(config_));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), Not(HasSubstr("access control")));
}

TEST_F(GuardedServiceTest, RulesOfAccessReachTheGate) {
  start();
  EXPECT_EQ(forwarded("/api/v1/query?query=up"), "403");
  EXPECT_EQ(forwarded_with({.confine = true}, "/api/v1/query?query=up"),
            "/api/v1/query?query=up%7Buuid%3D%221%22%7D");
  EXPECT_EQ(forwarded_with({.pin_cluster = true}, kOwnTarget),
            "/api/v1/query?query=x%7Buuid%3D%221%22%2C%20ceems_id%3D%22c%22%7D");
  EXPECT_EQ(forwarded_with({.shared_metrics = {{"up"}}}, "/api/v1/query?query=up"),
            "/api/v1/query?query=up");

  EXPECT_EQ(forwarded_with({}, "/api/v1/status/buildinfo"), "403");
  EXPECT_EQ(forwarded_with({.editors = true}, "/api/v1/status/buildinfo"),
            "/api/v1/status/buildinfo");

  EXPECT_EQ(forwarded_with({}, std::string("/prom") + kOwnTarget), "403");
  EXPECT_EQ(forwarded_with({.path_prefixes = {"/prom"}}, std::string("/prom") + kOwnTarget),
            std::string("/prom") + kOwnTarget);

  const std::string experimental = "/api/v1/query?query=limitk%281%2C%20x%7Buuid%3D%221%22%7D%29";
  EXPECT_EQ(forwarded_with({}, experimental), experimental);
  EXPECT_EQ(forwarded_with({.experimental = false}, experimental), "400");

  EXPECT_THAT(forwarded_with({}, kOwnTarget), Not(HasSubstr("lookback_delta")));
  EXPECT_THAT(forwarded_with({.lifetimes = true}, kOwnTarget), HasSubstr("lookback_delta"));
}

TEST_F(GuardedServiceTest, HiddenLabelsReachTheGate) {
  start();
  const std::string copy =
      "/api/v1/query?query=label_replace%28x%7Buuid%3D%221%22%7D%2C%20%22a%22%2C%20%22%241%22%2C%20"
      "%22instance%22%2C%20%22%28.%2A%29%22%29";
  EXPECT_EQ(forwarded_with({}, copy), copy);
  config_.clusters[0].tsdb[0].filter_labels = {"instance"};
  EXPECT_EQ(forwarded_with({}, copy), "403");
}

TEST_F(GuardedServiceTest, ServersAreAskedAtTheStartWhetherTheyHonourMatchers) {
  ServiceOptions options = options_with(1);
  options.matchers = std::chrono::hours(1);
  const auto service = made(options, config_);
  ASSERT_TRUE(service->apply(config_));
  service->start();
  // One question each for labels, values and series, because the answer is not one of a TSDB.
  EXPECT_TRUE(eventually([this] { return backend_.requests == 3; }));
  EXPECT_THAT(backend_.last(), StartsWith("/api/v1/series?start="));
  ASSERT_TRUE(service->apply(config_));
  EXPECT_TRUE(eventually([this] { return backend_.requests == 6; }));
}

TEST_F(GuardedServiceTest, BodiesAreBoundedByWhatIsCheckedOfThem) {
  const auto status_of = [](const Service& service, std::size_t bytes) {
    net::RawConnection connection(address_of(service));
    connection.send(
        "POST /api/v1/query HTTP/1.1\r\nHost: x\r\nX-Ceems-Cluster-Id: c\r\n"
        "X-Grafana-User: alice\r\nContent-Length: " +
        std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x'));
    return connection.answer().status;
  };
  constexpr std::size_t kChecked = FrontendSnapshot::kMaxCheckedBodyBytes;
  start();
  EXPECT_EQ(status_of(*service_, kChecked), 415);
  EXPECT_EQ(status_of(*service_, kChecked + 1), 413);
  const Config open = config_with(backend_.url());
  const auto service = made(options_with(1), open);
  ASSERT_TRUE(service->apply(open));
  service->start();
  EXPECT_EQ(status_of(*service, kChecked + 1), 200);
}

}  // namespace
}  // namespace ceems::lb
