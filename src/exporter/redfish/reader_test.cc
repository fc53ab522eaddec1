#include "exporter/redfish/reader.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/ipmi/fake_port.h"
#include "exporter/redfish/mock_service.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter::redfish {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Config config_for(const MockService& service) {
  Config config;
  config.protocol = "http";
  config.hostname = "127.0.0.1";
  config.port = std::stoi(service.port());
  config.username = "admin";
  config.password = "s3cret\"";
  config.timeout = testing::kPatience;
  return config;
}

struct Bench {
  MockService service;
  testing::FakeClock clock;
  std::unique_ptr<Reader> reader;

  explicit Bench(ReaderOptions options = {}) { connect(config_for(service), std::move(options)); }
  explicit Bench(const std::function<void(Config&)>& change) {
    Config config = config_for(service);
    change(config);
    connect(std::move(config), {});
  }
  void connect(Config config, ReaderOptions options) {
    reader =
        std::make_unique<Reader>(*Session::create(std::move(config)), std::move(options), clock);
  }
  Result<Readings> read() { return reader->read({}); }
  /// "Label=watts" of each chassis, or the error.
  std::string watts() {
    const auto readings = read();
    if (!readings) {
      return readings.error().message;
    }
    std::string all;
    for (const ChassisReading& chassis : readings->chassis) {
      all += fmt::format("{}{}={}", all.empty() ? "" : " ", chassis.label, chassis.watts.current);
    }
    return all;
  }
};

TEST(RedfishReader, LogsInAndReadsEveryChassis) {
  Bench bench;
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900");
  EXPECT_THAT(
      bench.service.requests(),
      ElementsAre("GET /redfish/v1/", "POST /redfish/v1/Sessions", "GET /redfish/v1/Chassis",
                  "GET /redfish/v1/Chassis/Node-1", "GET /redfish/v1/Chassis/Tray",
                  "GET /redfish/v1/Chassis/Node-1/Power", "GET /redfish/v1/Chassis/Tray/Power"));
  EXPECT_EQ(bench.service.last_login(), R"({"UserName":"admin","Password":"s3cret\""})");
  EXPECT_EQ(bench.service.last_header("X-Auth-Token"), "token1");
  EXPECT_EQ(bench.service.last_header("X-Redfish-Url"), bench.service.url());
  EXPECT_EQ(bench.service.last_header("Authorization"), "-");
  // The second read only requests power.
  bench.service.set_power("Tray", 901);
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=901");
  EXPECT_EQ(bench.service.requests().size(), 9U);
}

TEST(RedfishReader, LogsOutAtTheEnd) {
  Bench bench;
  bench.watts();
  bench.reader.reset();
  EXPECT_EQ(bench.service.requests().back(), "DELETE /redfish/v1/Sessions/1");
  EXPECT_EQ(bench.service.last_header("X-Auth-Token"), "token1");
}

TEST(RedfishReader, WithoutAUserThereIsNoLogin) {
  Bench bench([](Config& config) { config.username = ""; });
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900");
  EXPECT_EQ(bench.service.last_header("X-Auth-Token"), "-");
  EXPECT_EQ(bench.service.last_header("Authorization"), "-");
  bench.reader.reset();
  EXPECT_EQ(bench.service.count("POST /redfish/v1/Sessions"), 0);
}

TEST(RedfishReader, BasicAuthenticationInsteadOfASession) {
  Bench bench([](Config& config) {
    config.use_session_token = false;
    config.password = "pw";
  });
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900");
  EXPECT_EQ(bench.service.last_header("Authorization"), "Basic YWRtaW46cHc=");
  EXPECT_EQ(bench.service.count("POST /redfish/v1/Sessions"), 0);
}

TEST(RedfishReader, UsesAProxyByItsUrl) {
  Bench bench([](Config& config) {
    config.external_url = config.bmc_url();
    config.protocol = "https";
    config.hostname = "bmc-17";
    config.port = 443;
    config.http.authorization =
        net::ClientOptions::Authorization{.type = "Bearer", .credentials = "proxytoken"};
  });
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900");
  EXPECT_EQ(bench.service.last_header("X-Redfish-Url"), "https://bmc-17:443");
  EXPECT_EQ(bench.service.last_header("Authorization"), "Bearer proxytoken");
  EXPECT_EQ(bench.service.last_header("X-Auth-Token"), "token1");
}

TEST(RedfishReader, RenewsAnExpiredTokenOnceForAllChassis) {
  Bench bench;
  bench.watts();
  bench.service.expire_tokens();
  bench.service.set_power("Node-1", 410);
  EXPECT_EQ(bench.watts(), "Node_1=410 Tray=900");
  EXPECT_EQ(bench.service.count("POST /redfish/v1/Sessions"), 2);
  EXPECT_EQ(bench.service.count("DELETE /redfish/v1/Sessions/1"), 1);
  EXPECT_EQ(bench.watts(), "Node_1=410 Tray=900");
  EXPECT_EQ(bench.service.count("POST /redfish/v1/Sessions"), 2);
}

TEST(RedfishReader, APermanentRefusalDoesNotCauseEndlessLogins) {
  Bench bench;
  bench.service.refuse_tokens();
  for (int i = 0; i < 100; ++i) {
    EXPECT_THAT(bench.watts(), HasSubstr("status 401"));
    bench.clock.advance(seconds(5));
  }
  // 500 s with pauses of 60, 120, 240 and 480 s, and two logins each time.
  EXPECT_LE(bench.service.count("POST /redfish/v1/Sessions"), 8);
}

TEST(RedfishReader, ARefusedLoginIsRarelyRetried) {
  Bench bench;
  bench.service.refuse_logins();
  for (int i = 0; i < 100; ++i) {
    const std::string error = bench.watts();
    EXPECT_THAT(error, HasSubstr("login: /redfish/v1/Sessions: status 401"));
    EXPECT_THAT(error, Not(HasSubstr("s3cret")));
    bench.clock.advance(seconds(5));
  }
  EXPECT_LE(bench.service.count("POST /redfish/v1/Sessions"), 4);
}

TEST(RedfishReader, APartlyFailedConnectIsRepaired) {
  Bench bench;
  bench.service.set("/redfish/v1/Chassis", {.status = 500});
  EXPECT_THAT(bench.watts(), HasSubstr("status 500"));
  bench.service.set("/redfish/v1/Chassis",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Tray"}]})"});
  EXPECT_THAT(bench.watts(), HasSubstr("status 500")) << "it waits before the next attempt";
  bench.clock.advance(seconds(6));
  EXPECT_EQ(bench.watts(), "Tray=900");
}

TEST(RedfishReader, AnEmptyListIsReadAgain) {
  Bench bench;
  bench.service.set("/redfish/v1/Chassis", {.body = "{}"});
  EXPECT_EQ(bench.watts(), "the service reports no power: no chassis has a resource for it");
  bench.service.set("/redfish/v1/Chassis",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Tray"}]})"});
  bench.clock.advance(seconds(61));
  EXPECT_EQ(bench.watts(), "Tray=900");
}

TEST(RedfishReader, OneChassisDoesNotAffectTheOthers) {
  Bench bench;
  bench.watts();
  const std::string power = "/redfish/v1/Chassis/Node-1/Power";
  const std::vector<MockService::Answer> bad{
      {.status = 500}, {.body = "<html>"}, {.status = 404}, {.body = std::string(100'000, '[')}};
  for (const auto& answer : bad) {
    bench.service.set(power, answer);
    EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900") << "the last reading is used";
  }
  EXPECT_EQ(bench.service.count("POST /redfish/v1/Sessions"), 1);
  bench.clock.advance(minutes(5) + seconds(1));
  EXPECT_EQ(bench.watts(), "Tray=900") << "but not forever";
}

TEST(RedfishReader, ARemovedChassisIsForgotten) {
  Bench bench;
  bench.watts();
  bench.service.set("/redfish/v1/Chassis/Tray/Power", {.status = 404});
  bench.watts();
  bench.service.set("/redfish/v1/Chassis",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Node-1"}]})"});
  bench.clock.advance(seconds(61));
  EXPECT_EQ(bench.watts(), "Node_1=400.25");
}

TEST(RedfishReader, ATooLargeAnswerIsRefused) {
  Bench bench;
  bench.service.set("/redfish/v1/Chassis",
                    // NOLINTNEXTLINE(bugprone-string-constructor): 10 MB
                    {.body = "{\"Members\":[" + std::string(10'000'000, ' ') + "]}"});
  EXPECT_THAT(bench.watts(), HasSubstr("larger than 2097152 bytes"));
}

TEST(RedfishReader, FollowsPagesButNotInACycle) {
  Bench bench;
  bench.service.set("/redfish/v1/Chassis",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Tray"}],
                                 "Members@odata.nextLink":"/redfish/v1/Chassis?$skip=1"})"});
  bench.service.set("/redfish/v1/Chassis?$skip=1",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/Node-1"},
                                            {"@odata.id":"/redfish/v1/Chassis/Tray"}],
                                 "Members@odata.nextLink":"/redfish/v1/Chassis"})"});
  EXPECT_EQ(bench.watts(), "Tray=900 Node_1=400.25");
}

TEST(RedfishReader, NumberOfPagesAndChassisIsLimited) {
  Bench bench;
  bench.service.set_chassis("Tray", "");
  for (int page = 0; page < 40; ++page) {
    const std::string path = page == 0 ? "" : fmt::format("?$skip={}", page);
    bench.service.set(
        "/redfish/v1/Chassis" + path,
        {.body = fmt::format(
             R"({{"Members":[],"Members@odata.nextLink":"/redfish/v1/Chassis?$skip={}"}})",
             page + 1)});
  }
  EXPECT_THAT(bench.watts(), HasSubstr("no power"));
  EXPECT_EQ(bench.service.count("GET /redfish/v1/Chassis?$skip=31"), 1);
  EXPECT_EQ(bench.service.count("GET /redfish/v1/Chassis?$skip=32"), 0);

  std::string members;
  for (int i = 0; i < 200; ++i) {
    members += fmt::format("{}{{\"@odata.id\":\"/c/{}\"}}", i == 0 ? "" : ",", i);
    bench.service.set(
        fmt::format("/c/{}", i),
        {.body = R"({"Id":"x","Power":{"@odata.id":"/redfish/v1/Chassis/Tray/Power"}})"});
  }
  bench.service.set("/redfish/v1/Chassis", {.body = "{\"Members\":[" + members + "]}"});
  bench.clock.advance(minutes(2));
  const auto readings = bench.read();
  ASSERT_TRUE(readings);
  ASSERT_EQ(readings->chassis.size(), Reader::kMaxChassis);
  EXPECT_EQ(readings->chassis[0].label, "x");
  EXPECT_EQ(readings->chassis[1].label, "x_2") << "labels are unique";
}

TEST(RedfishReader, ChassisWithoutPowerAreLeftOutSilently) {
  Bench bench;
  bench.service.set("/redfish/v1/Chassis/Tray", {.body = R"({"Id":"Tray"})"});
  EXPECT_EQ(bench.watts(), "Node_1=400.25");
  EXPECT_EQ(bench.service.count("GET /redfish/v1/Chassis/Tray/Power"), 0);
}

TEST(RedfishReader, FindsThePowerInTheResourcesThatReplacedPower) {
  Bench bench;
  const auto link = [](const char* key, const char* path) {
    return fmt::format(R"("{}":{{"@odata.id":"{}"}})", key, path);
  };
  const std::string system = R"({"Id":"1","Links":{"ComputerSystems":[{}]},)";
  bench.service.set("/redfish/v1/Chassis",
                    {.body = R"({"Members":[{"@odata.id":"/redfish/v1/Chassis/1"}]})"});
  bench.service.set("/redfish/v1/Chassis/1",
                    {.body = system + link("EnvironmentMetrics", "/e") + "," +
                             link("PowerSubsystem", "/p") + "," + link("Sensors", "/s") + "}"});
  bench.service.set("/e", {.body = R"({"PowerWatts":{"Reading":0}})"});
  bench.service.set("/p", {.body = "{" + link("PowerSupplies", "/ps") + "}"});
  bench.service.set("/ps",
                    {.body = R"({"Members":[{"@odata.id":"/ps/1"},{"@odata.id":"/ps/2"}]})"});
  bench.service.set("/ps/1", {.body = "{" + link("Metrics", "/m") + "}"});
  bench.service.set("/ps/2", {.body = "{" + link("Metrics", "/m") + "}"});
  bench.service.set("/m", {.body = "{}"});
  bench.service.set("/s", {.body = R"({"Members":[{"@odata.id":"/s/CPU1_Power"},
                                                  {"@odata.id":"/s/SystemBoardPwrConsumption"}]})"});
  bench.service.set("/s/SystemBoardPwrConsumption", {.body = R"({"Reading":null})"});
  EXPECT_EQ(bench.watts(),
            "the service reports no power: chassis 1: no power in /e: PowerWatts is zero or not a "
            "power; /p: a supply has no InputPowerWatts; /s: none of 2 sensors is the power of the "
            "chassis");
  bench.service.set("/s/SystemBoardPwrConsumption", {.body = R"({"Reading":300})"});
  EXPECT_THAT(bench.watts(), HasSubstr("no power")) << "it is not searched at each read";
  bench.clock.advance(seconds(61));
  EXPECT_EQ(bench.watts(), "1=300");
  EXPECT_EQ(bench.read()->node_watts, 300);
  bench.service.set("/s/SystemBoardPwrConsumption", {.body = R"({"Reading":65535})"});
  bench.service.set("/m", {.body = R"({"InputPowerWatts":{"Reading":160}})"});
  EXPECT_EQ(bench.watts(), "1=320") << "a source that has no reading any more is replaced";
  bench.service.set("/e", {.body = R"({"PowerWatts":{"Reading":412.5}})"});
  EXPECT_EQ(bench.watts(), "1=320") << "what was found is kept";
  EXPECT_EQ(bench.service.count("GET /s/CPU1_Power"), 0);
}

TEST(RedfishReader, AChassisWithoutPowerDoesNotHideTheOthers) {
  Bench bench;
  bench.service.set_power("Node-1", 0);
  EXPECT_EQ(bench.watts(), "Tray=900");
  bench.clock.advance(seconds(61));
  bench.service.set_power("Node-1", 400);
  EXPECT_EQ(bench.watts(), "Node_1=400 Tray=900");
  EXPECT_EQ(bench.read()->node_watts, 400);
  bench.service.set_power("Node-1", 0);
  EXPECT_EQ(bench.watts(), "Tray=900") << "zero is not served as the last value";
}

TEST(RedfishReader, RedirectsStayOnTheHost) {
  Bench bench;
  const MockService other;
  const std::string power = "/redfish/v1/Chassis/Node-1/Power";
  bench.service.set(power, {.status = 302, .headers = {{"Location", "/elsewhere"}}});
  bench.service.set("/elsewhere", {.body = R"({"PowerControl":[{"PowerConsumedWatts":5}]})"});
  EXPECT_EQ(bench.watts(), "Node_1=5 Tray=900");
  bench.service.set(power, {.status = 307, .headers = {{"Location", other.url() + power}}});
  bench.service.set_power("Tray", 901);
  EXPECT_EQ(bench.watts(), "Node_1=5 Tray=901");
  EXPECT_TRUE(other.requests().empty()) << "a token must not go to another host";
  bench.service.set("/elsewhere", {.status = 302, .headers = {{"Location", "/elsewhere"}}});
  bench.service.set(power, {.status = 302, .headers = {{"Location", "/elsewhere"}}});
  bench.watts();
  EXPECT_EQ(bench.service.count("GET /elsewhere"), 6) << "1 before and 5 in the cycle";
}

TEST(RedfishReader, ARedirectedLoginIsNotFollowed) {
  Bench bench;
  const MockService other;
  bench.service.set("/redfish/v1/",
                    {.body = R"({"Links":{"Sessions":{"@odata.id":"/redfish/v1/Chassis"}}})"});
  EXPECT_EQ(bench.service.last_login(), "");
  bench.service.set("/redfish/v1/",
                    {.status = 301, .headers = {{"Location", other.url() + "/redfish/v1/"}}});
  EXPECT_THAT(bench.watts(), HasSubstr("another host"));
  EXPECT_TRUE(other.requests().empty());
}

TEST(RedfishReader, ALoginNeedsALink) {
  Bench bench;
  bench.service.set("/redfish/v1/", {.body = R"({"Chassis":{"@odata.id":"/redfish/v1/Chassis"}})"});
  EXPECT_THAT(bench.watts(), HasSubstr("no link to the sessions"));
}

TEST(RedfishReader, AMissingServiceIsRetriedLater) {
  testing::FakeClock clock;
  Config config;
  {
    const MockService gone;
    config = config_for(gone);
  }
  Reader reader(*Session::create(config), {}, clock);
  const auto first = reader.read({});
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kUnavailable);
  clock.advance(seconds(4));
  EXPECT_FALSE(reader.read({}));
  clock.advance(minutes(20));
  EXPECT_FALSE(reader.read({}));
}

TEST(RedfishReader, AHangEndsAtTheTimeoutOrWhenStopped) {
  Bench bench([](Config& config) { config.timeout = milliseconds(500); });
  bench.watts();
  bench.service.hang("/redfish/v1/Chassis/Node-1/Power");
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900") << "a hanging one does not affect the other";
  bench.service.release();

  Bench slow([](Config& config) { config.timeout = minutes(10); });
  slow.service.hang("/redfish/v1/");
  std::stop_source stop;
  const std::jthread stopper([&] {
    EXPECT_TRUE(testing::eventually([&] { return slow.service.count("GET /redfish/v1/") > 0; }));
    stop.request_stop();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(slow.reader->read(stop.get_token()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, testing::kPatience);
  slow.service.release();
}

TEST(RedfishReader, TheNodeIsTheChassisWithTheSystem) {
  Bench bench;
  EXPECT_EQ(bench.read()->node_watts, 400.25) << "the tray draws more, but contains no system";
  bench.service.set_chassis("Node-1", "");
  bench.clock.advance(minutes(11));
  EXPECT_EQ(bench.read()->node_watts, 900) << "none contains a system: the greatest counts";
  bench.service.set("/redfish/v1/Chassis/Tray/Power", {.status = 500});
  EXPECT_EQ(bench.read()->node_watts, std::nullopt) << "an old value does not count";
  bench.service.set_power("Tray", 800);
  bench.service.set("/redfish/v1/Chassis/Node-1/Power", {.status = 500});
  EXPECT_EQ(bench.read()->node_watts, 800);
}

TEST(RedfishReader, TheNodeIsTheSumOfTheNamedChassis) {
  Bench bench(ReaderOptions{.node_chassis = {"Node-1", "Tray"}});
  EXPECT_EQ(bench.read()->node_watts, 1300.25);
  bench.service.set("/redfish/v1/Chassis/Tray/Power", {.status = 500});
  EXPECT_EQ(bench.read()->node_watts, std::nullopt);
  Bench wrong(ReaderOptions{.node_chassis = {"Nowhere"}});
  EXPECT_EQ(wrong.read()->node_watts, std::nullopt);
}

/// The power of the node after 100 s of reads, whose chassis has `links` and draws 440 W by the
/// counter that `count` sets.
double node_watts_after(Bench& bench,
                        const std::string& links,
                        const std::function<void(double joules)>& count) {
  bench.service.set_chassis("Node-1", R"("Links":{"ComputerSystems":[{}]},)" + links);
  double joules = 3.6e9;
  for (int read = 0; read < 20; ++read) {
    count(joules);
    static_cast<void>(bench.read().has_value());
    bench.clock.advance(seconds(5));
    joules += 5 * 440;
  }
  return bench.read()->node_watts.value_or(0);
}

TEST(RedfishReader, ACounterOfEnergyScalesThePowerOfTheNode) {
  Bench bench;
  EXPECT_NEAR(node_watts_after(
                  bench, R"("EnvironmentMetrics":{"@odata.id":"/env"},)",
                  [&](double joules) {
                    bench.service.set(
                        "/env",
                        {.body = fmt::format(R"({{"EnergyJoules":{{"Reading":{}}}}})", joules)});
                  }),
              440, 0.5);
  EXPECT_EQ(bench.watts(), "Node_1=400.25 Tray=900") << "the series stay those of the BMC";
  EXPECT_LE(bench.service.count("GET /env"), 9) << "every 15 s";
  bench.service.set("/env", {.status = 500});
  bench.clock.advance(seconds(20));
  EXPECT_NEAR(*bench.read()->node_watts, 440, 0.5);
}

TEST(RedfishReader, FindsCountersOfSuppliesAndSensors) {
  Bench supplies;
  supplies.service.set("/ps", {.body = R"({"PowerSupplies":{"@odata.id":"/ps/all"}})"});
  supplies.service.set("/ps/all",
                       {.body = R"({"Members":[{"@odata.id":"/ps/1"},{"@odata.id":"/ps/2"}]})"});
  supplies.service.set("/ps/1", {.body = R"({"Metrics":{"@odata.id":"/ps/1/m"}})"});
  supplies.service.set("/ps/2", {.body = R"({"Metrics":{"@odata.id":"/ps/2/m"}})"});
  EXPECT_NEAR(node_watts_after(supplies, R"("PowerSubsystem":{"@odata.id":"/ps"},)",
                               [&](double joules) {
                                 for (const char* path : {"/ps/1/m", "/ps/2/m"}) {
                                   supplies.service.set(
                                       path, {.body = fmt::format(R"({{"EnergykWh":{:.6f}}})",
                                                                  joules / 2 / 3.6e6)});
                                 }
                               }),
              440, 0.5);

  Bench sensors;
  sensors.service.set(
      "/s",
      {.body = R"({"Members":[{"@odata.id":"/s/CPU1_Energy"},{"@odata.id":"/s/TotalEnergy"}]})"});
  EXPECT_NEAR(
      node_watts_after(
          sensors, R"("Sensors":{"@odata.id":"/s"},)",
          [&](double joules) {
            sensors.service.set(
                "/s/TotalEnergy",
                {.body = fmt::format(R"({{"ReadingType":"EnergyJoules","Reading":{}}})", joules)});
          }),
      440, 0.5);
  EXPECT_EQ(sensors.service.count("GET /s/CPU1_Energy"), 0);
}

TEST(BmcAddress, IsTheNameWithoutTrailingDotOrTheAddress) {
  ipmi::FakePort port([](const ipmi::Request& request, long id) {
    return std::vector<ipmi::Message>{ipmi::answer_to(request, id, {0x00, 0x11, 192, 0, 2, 17})};
  });
  EXPECT_EQ(find_bmc_address(port, std::chrono::seconds(5)), "192.0.2.17");
  EXPECT_EQ(bmc_name("192.0.2.17",
                     [](const std::string& address) -> Result<std::string> {
                       return "bmc-" + address + ".example.";
                     }),
            "bmc-192.0.2.17.example");
  EXPECT_EQ(bmc_name("192.0.2.17",
                     [](const std::string&) -> Result<std::string> {
                       return fail(ErrorCode::kNotFound, "no name");
                     }),
            "192.0.2.17");
  ipmi::FakePort silent([](const ipmi::Request&, long) { return std::vector<ipmi::Message>{}; });
  EXPECT_FALSE(find_bmc_address(silent, std::chrono::milliseconds(10)));
}

}  // namespace
}  // namespace ceems::exporter::redfish
