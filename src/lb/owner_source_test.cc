#include "lb/owner_source.h"

#include <atomic>
#include <chrono>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/server/server.h"
#include "store/database.h"
#include "store/factory/open_database.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::lb {
namespace {

using testing::eventually;
using ::testing::HasSubstr;

/// Clusters a and b in a database, and an API server that has cluster z and the admin "root".
class OwnerSourceTest : public ::testing::Test {
 protected:
  OwnerSourceTest() {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    api_ = *net::Server::create(
        std::move(options), [this](const net::Request& request, net::Response& response) {
          ++asked_;
          EXPECT_TRUE(eventually([this] { return !hangs_; }));
          const std::string* token = net::find_header(request.headers, "X-Ceems-Service-Token");
          with_token_ += token != nullptr && *token == "the-token" ? 1 : 0;
          named_ += net::find_header(request.headers, "X-Grafana-User") != nullptr ? 1 : 0;
          response.body = request.path == "/api/v1/clusters/admin"
                              ? R"({"status":"success","data":[{"id":"z"}]})"
                              : R"({"status":"success","data":[{"name":"root"}]})";
        });
    api_->start();
  }
  [[nodiscard]] std::string api_url() const { return "http://" + api_->addresses()[0]; }
  [[nodiscard]] std::string directory() const { return directory_.path().string(); }
  [[nodiscard]] std::filesystem::path file() const { return directory_.path() / "ceems.db"; }
  void make_database() { make_database_in(directory(), "ada"); }
  /// Unit 1 of both clusters is that of `user`.
  static void make_database_in(const std::string& directory, const std::string& user) {
    const ceems::testing::FakeClock clock;
    auto database = store::open_database({.directory = directory, .time_zone = "UTC"}, clock);
    ASSERT_TRUE(database) << database.error().message;
    for (const std::string id : {"a", "b"}) {
      store::ClusterUpdate update;
      update.cluster = {.id = id, .manager = "slurm", .updaters = {}};
      update.window = {1'000, 2'000};
      model::Unit unit;
      unit.resource_manager = "slurm";
      unit.uuid = "1";
      unit.project = "project of " + user;
      unit.username = user;
      unit.state = "RUNNING";
      update.units = {unit};
      update.projects = std::vector<model::Project>{{.name = unit.project, .users = {user}}};
      ASSERT_TRUE((*database)->writer().write(update));
    }
  }
  static Config with_backends_of(Config config, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) {
      config.clusters.push_back({.id = id});
    }
    return config;
  }
  static std::string outcome(const Config& config) {
    auto source = open_owners(config);
    if (!source || !*source) {
      return source ? "none" : source.error().message;
    }
    const auto checked = check_clusters(config, **source);
    return checked ? "fine" : checked.error().message;
  }

  std::atomic<int> asked_ = 0;
  std::atomic<bool> hangs_ = false;
  std::atomic<int> with_token_ = 0;
  std::atomic<int> named_ = 0;
  ceems::testing::TempDir directory_;

 private:
  std::unique_ptr<net::Server> api_;
};

TEST_F(OwnerSourceTest, WhereNothingIsConfiguredThereIsNone) {
  const auto source = open_owners({});
  ASSERT_TRUE(source);
  EXPECT_EQ(*source, nullptr);
}

TEST_F(OwnerSourceTest, TheDatabaseComesBeforeTheApi) {
  make_database();
  const auto source = open_owners({.api_url = api_url(), .data_path = directory()});
  ASSERT_TRUE(source) << source.error().message;
  ASSERT_TRUE(*source);
  EXPECT_NE((*source)->reader, nullptr);
  EXPECT_EQ((*source)->cached->is_admin("root"), false);
  EXPECT_EQ(asked_, 0);
}

TEST_F(OwnerSourceTest, TheApiIsAskedWhereThereIsNoDatabaseFile) {
  for (const auto& path : {std::optional(directory()), std::optional<std::string>()}) {
    const auto source = open_owners({.api_url = api_url(), .data_path = path});
    ASSERT_TRUE(source) << source.error().message;
    ASSERT_TRUE(*source);
    EXPECT_EQ((*source)->reader, nullptr);
    EXPECT_EQ((*source)->cached->is_admin("root"), true);
    EXPECT_EQ((*source)->cached->is_admin("alice"), false);
  }
  EXPECT_EQ(asked_, 4);
}

TEST_F(OwnerSourceTest, AnswersAreCachedForTheConfiguredTime) {
  for (const auto& [age, wanted] :
       {std::pair(std::chrono::seconds(30), 1), {std::chrono::seconds(0), 3}}) {
    asked_ = 0;
    Config config{.api_url = api_url()};
    config.access.cache_age = age;
    const auto source = open_owners(config);
    ASSERT_TRUE(source && *source);
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ((*source)->cached->is_admin("root"), true);
    }
    EXPECT_EQ(asked_, wanted);
  }
}

TEST_F(OwnerSourceTest, ADatabaseThatIsReplacedOrRemovedIsNotReadAnyMore) {
  make_database();
  const auto source =
      open_owners({.data_path = directory()}, {.look = std::chrono::milliseconds(5)});
  ASSERT_TRUE(source && *source);
  (*source)->reader.reset();
  gate::Owners& owners = *(*source)->cached;
  const auto sees = [&](const std::string& user) -> std::string {
    const auto answer = owners.may_see(user, "a", {"1"});
    return answer ? (*answer ? "yes" : "no") : "unknown";
  };
  const auto remembered = [&] { return owners.cached_only()->may_see("ada", "a", {"1"}); };
  EXPECT_EQ(sees("ada"), "yes");
  EXPECT_TRUE(remembered());

  ceems::testing::TempDir other;
  make_database_in(other.path().string(), "bob");
  std::filesystem::rename(other.path() / "ceems.db", file());
  EXPECT_TRUE(eventually([&] { return sees("ada") == "no"; }));
  EXPECT_EQ(sees("bob"), "yes");

  std::filesystem::remove(file());
  EXPECT_TRUE(eventually([&] { return sees("bob") == "unknown"; }));
  EXPECT_FALSE(owners.is_admin("root"));
  EXPECT_FALSE(remembered());

  make_database();
  EXPECT_TRUE(eventually([&] { return sees("ada") == "yes"; }));
}

TEST_F(OwnerSourceTest, AnApiServerThatHangsIsNotAskedAgainForAWhile) {
  const auto source =
      open_owners({.api_url = api_url()}, {.question = std::chrono::milliseconds(600)});
  ASSERT_TRUE(source && *source);
  hangs_ = true;
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE((*source)->cached->is_admin("user" + std::to_string(i)));
  }
  EXPECT_EQ(asked_, 1);
  hangs_ = false;
}

TEST_F(OwnerSourceTest, SaysWhatCannotBeOpened) {
  const std::string database = outcome({.data_path = directory()});
  EXPECT_THAT(database, HasSubstr("cannot open the database of unit owners: "));
  EXPECT_THAT(database, HasSubstr(directory()));
  Config api{.api_url = api_url()};
  api.api_client.tls.ca_file = directory() + "/none.pem";
  EXPECT_THAT(outcome(api), HasSubstr("ceems_api_server.web: "));
  EXPECT_THAT(outcome(api), HasSubstr("none.pem"));
}

TEST_F(OwnerSourceTest, ADatabaseOnAServerIsNotLookedForInTheDirectory) {
  make_database();
  EXPECT_THAT(outcome({.data_path = directory(), .database_url = "postgresql://127.0.0.1:1/none"}),
              HasSubstr("127.0.0.1"));
}

TEST_F(OwnerSourceTest, BackendsOfUnknownClustersAreRefused) {
  make_database();
  const Config database{.data_path = directory()};
  EXPECT_EQ(outcome(with_backends_of(database, {"a", "b"})), "fine");
  EXPECT_EQ(outcome(with_backends_of(database, {"a", "z"})),
            "unknown cluster ID: z. Cluster IDs in CEEMS DB are a,b");
  const Config api{.api_url = api_url()};
  EXPECT_EQ(outcome(with_backends_of(api, {"z"})), "fine");
  EXPECT_EQ(outcome(with_backends_of(api, {"a"})),
            "unknown cluster ID: a. Cluster IDs in CEEMS DB are z");
}

TEST_F(OwnerSourceTest, WhereClustersCannotBeReadNothingIsAccepted) {
  Config config{.api_url = "http://127.0.0.1:1"};
  config.clusters.push_back({.id = "z"});
  auto source = open_owners(config);
  ASSERT_TRUE(source && *source);
  const auto checked = check_clusters(config, **source);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(checked.error().message, HasSubstr("cannot check the IDs of backends: "));
}

TEST_F(OwnerSourceTest, AServiceAccountWithACredentialIsNotNamedInTheHeader) {
  Config config = with_backends_of({.api_url = api_url()}, {"z"});
  EXPECT_EQ(outcome(config), "fine");
  EXPECT_EQ(named_, 1);
  EXPECT_EQ(with_token_, 0);
  config.service_account.token_file = directory_.write("token", "the-token\n").string();
  EXPECT_EQ(outcome(config), "fine");
  EXPECT_EQ(named_, 1);
  EXPECT_EQ(with_token_, 1);
  const auto source = open_owners(config);
  ASSERT_TRUE(source);
  EXPECT_TRUE((*source)->cached->is_admin("root").value_or(false));
  EXPECT_EQ(named_, 1);
  EXPECT_TRUE((*source)->cached->may_see("ada", "z", {"1"}).value_or(false));
  EXPECT_EQ(named_, 2);  // the user is
  EXPECT_EQ(with_token_, 3);
}

}  // namespace
}  // namespace ceems::lb
