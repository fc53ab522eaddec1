#include "exporter/profile/push/pusher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/profile/format/pprof.h"
#include "exporter/profile/format/test_profile.h"
#include "exporter/profile/push/mock_pyroscope.h"
#include "net/encoding.h"
#include "net/testing/test_certificate.h"
#include "net/testing/test_port.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

constexpr PusherOptions kQuick{
    .timeout = testing::kPatience, .first_pause = milliseconds(1), .max_pause = milliseconds(4)};

net::Response status(int code, std::string body = "", net::Headers headers = {}) {
  net::Response response;
  response.status = code;
  response.body = std::move(body);
  response.headers = std::move(headers);
  return response;
}

/// A pusher with what it needs.
struct Bench {
  explicit Bench(PushConfig config, PusherOptions options = kQuick) {
    auto created = Pusher::create(std::move(config), clock, options);
    EXPECT_TRUE(created) << created.error().message;
    pusher = *std::move(created);
  }
  explicit Bench(const MockPyroscope& server, std::int64_t retries = 5)
      : Bench(PushConfig{.url = server.url(), .retries = retries}) {}

  /// Queues the small profile for a unit.
  void add(const std::string& unit) const {
    const auto added = pusher->add({.service_name = unit, .pid = "7"}, small_profile());
    EXPECT_TRUE(added) << added.error().message;
  }
  /// The counters once nothing is queued.
  [[nodiscard]] PushCounters finished() const {
    EXPECT_TRUE(testing::eventually([this] { return pusher->counters().queued == 0; }));
    const PushCounters counters = pusher->counters();
    EXPECT_EQ(counters.queued_bytes, 0U);
    return counters;
  }

  testing::FakeClock clock;
  std::unique_ptr<Pusher> pusher;
};

std::vector<std::string> units(const std::vector<net::Request>& requests) {
  std::vector<std::string> units;
  for (const net::Request& request : requests) {
    units.push_back(decode_push(request.body).label("service_name"));
  }
  return units;
}

std::string header(const net::Request& request, std::string_view name) {
  const std::string* const value = net::find_header(request.headers, name);
  return value == nullptr ? "-" : *value;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) {
    ++found;
  }
  return found;
}

TEST(Pusher, MakesOneUnaryCallForEachProfile) {
  MockPyroscope server;
  const Bench bench(PushConfig{.url = server.url() + "/prefix",
                               .external_labels = {{"cluster", "jz"}, {"a", ""}}});
  ASSERT_TRUE(bench.pusher->add({.service_name = "4711", .pid = "1234"}, small_profile()));
  const net::Request request = server.requests(1).at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/prefix/push.v1.PusherService/Push");
  EXPECT_EQ(header(request, "Content-Type"), "application/proto");
  EXPECT_EQ(header(request, "Connect-Protocol-Version"), "1");
  EXPECT_EQ(header(request, "Accept-Encoding"), "gzip");
  EXPECT_EQ(header(request, "Content-Encoding"), "-");
  EXPECT_EQ(header(request, "User-Agent"), "ceems_exporter");
  const DecodedPush push = decode_push(request.body);
  EXPECT_THAT(push.labels,
              ElementsAre(Pair("__name__", "process_cpu"), Pair("__process_pid__", "1234"),
                          Pair("service_name", "4711"), Pair("a", ""), Pair("cluster", "jz")));
  const auto profile = net::gunzip(push.raw_profile, 1U << 20U);
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_EQ(*profile, encode_pprof(small_profile(), PprofUse::kPush));
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 1U);
  EXPECT_EQ(counters.retried + counters.failed + counters.dropped, 0U);
}

TEST(Pusher, CompressesRequestsIfAskedTo) {
  MockPyroscope server;
  const Bench bench(PushConfig{.url = server.url(), .gzip = true});
  bench.add("42");
  const net::Request request = server.requests(1).at(0);
  EXPECT_EQ(header(request, "Content-Encoding"), "gzip");
  const auto message = net::gunzip(request.body, 1U << 20U);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(decode_push(*message).label("service_name"), "42");
  EXPECT_EQ(bench.finished().pushed, 1U);
}

TEST(Pusher, DoesNotPushProfilesThatShowNothing) {
  MockPyroscope server;
  const Bench bench(server);
  Profile only_process = small_profile();
  only_process.stacks = {{.frames = {0}, .samples = 9}};
  EXPECT_TRUE(bench.pusher->add({.service_name = "1", .pid = "1"}, only_process));
  EXPECT_TRUE(bench.pusher->add({.service_name = "1", .pid = "1"}, Profile{}));
  bench.add("2");
  EXPECT_EQ(bench.finished().pushed, 1U);
  EXPECT_THAT(units(server.requests(1)), ElementsAre("2"));
}

TEST(Pusher, SendsLargeProfilesAndCleanLabels) {
  MockPyroscope server;
  const Bench bench(server);
  ASSERT_TRUE(bench.pusher->add({.service_name = "a\xff\n", .pid = "1"}, many_stacks(20'000)));
  const DecodedPush push = decode_push(server.requests(1).at(0).body);
  EXPECT_GT(push.raw_profile.size(), 500'000U);
  EXPECT_EQ(push.label("service_name"), "a\uFFFD\n");
  EXPECT_EQ(bench.finished().pushed, 1U);
}

TEST(Pusher, RepeatsWhatMaySucceedLater) {
  MockPyroscope server;
  server.answer({status(503), status(429, "", {{"Retry-After", "3600"}}), status(500), status(504),
                 status(408), status(200)});
  const Bench bench(server);
  bench.add("1");
  bench.add("2");
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 2U);
  EXPECT_EQ(counters.retried, 5U);
  EXPECT_EQ(counters.failed, 0U);
  EXPECT_THAT(units(server.requests(7)), ElementsAre("1", "1", "1", "1", "1", "1", "2"));
}

TEST(Pusher, GivesUpAfterTheLastRetry) {
  MockPyroscope server;
  server.answer({status(503), status(503), status(503)});
  const Bench bench(server, 2);
  bench.add("1");
  bench.add("2");
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 1U);
  EXPECT_EQ(counters.retried, 2U);
  EXPECT_EQ(counters.failed, 1U);
  EXPECT_THAT(units(server.requests(4)), ElementsAre("1", "1", "1", "2"));
}

TEST(Pusher, WaitsAsLongAsTheServerAsksForWithinBounds) {
  MockPyroscope server;
  server.answer({status(429, "", {{"Retry-After", "1"}})});
  const Bench bench(
      PushConfig{.url = server.url()},
      {.timeout = testing::kPatience, .first_pause = milliseconds(1), .max_pause = seconds(9)});
  const auto start = steady_clock::now();
  bench.add("1");
  EXPECT_EQ(bench.finished().pushed, 1U);
  EXPECT_GE(steady_clock::now() - start, milliseconds(1000));
}

TEST(Pusher, DoesNotRepeatWhatTheServerRefuses) {
  for (const int code : {400, 401, 403, 404, 413, 415, 422, 501}) {
    MockPyroscope server;
    server.answer({status(code, "no")});
    const Bench bench(server);
    bench.add("1");
    bench.add("2");
    const PushCounters counters = bench.finished();
    EXPECT_EQ(counters.failed, 1U) << code;
    EXPECT_EQ(counters.pushed, 1U) << code;
    EXPECT_EQ(counters.retried, 0U) << code;
  }
}

TEST(Pusher, LogsOnceWhenItStartsFailingAndOnceWhenItWorksAgain) {
  MockPyroscope server;
  std::string packed;
  ASSERT_TRUE(
      net::Compressor(net::Encoding::kGzip, 6)
          .add("{\"code\":\"unavailable\",\"message\":\"ring\x1b is empty\"}", true, packed));
  server.answer({status(503, packed, {{"Content-Encoding", "gzip"}}), status(503), status(500)});
  PushConfig config{.url = "http://user:s3cret@" + server.address()};
  ::testing::internal::CaptureStderr();
  {
    const Bench bench(std::move(config));
    bench.add("1");
    bench.add("2");
    EXPECT_EQ(bench.finished().pushed, 2U);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(lines, "level=WARN"), 1U) << lines;
  EXPECT_THAT(lines, HasSubstr("profiles cannot be pushed"));
  EXPECT_THAT(lines, HasSubstr("url=" + server.url()));
  EXPECT_THAT(lines, HasSubstr("status 503: "));
  EXPECT_THAT(lines, HasSubstr("is empty"));
  EXPECT_THAT(lines, Not(HasSubstr("\x1b")));
  EXPECT_EQ(count(lines, "profiles are pushed again"), 1U);
  EXPECT_THAT(lines, Not(HasSubstr("s3cret")));
}

TEST(Pusher, LogsRejectedProfilesOnceAnHour) {
  MockPyroscope server;
  server.answer({status(400, "bad profile"), status(200), status(400, "bad profile"), status(400)});
  Bench bench(server);
  ::testing::internal::CaptureStderr();
  for (const char* unit : {"1", "2", "3"}) {
    bench.add(unit);
  }
  EXPECT_EQ(bench.finished().failed, 2U);
  EXPECT_EQ(count(::testing::internal::GetCapturedStderr(), "status 400: bad profile"), 1U);
  bench.clock.advance(std::chrono::hours(1));
  ::testing::internal::CaptureStderr();
  bench.add("4");
  EXPECT_EQ(bench.finished().failed, 3U);
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(lines, "a profile was rejected"), 1U);
  EXPECT_THAT(lines, Not(HasSubstr("cannot be pushed")));
}

TEST(Pusher, SurvivesAServerThatIsNotThere) {
  net::TestPort port(false);
  const Bench bench(PushConfig{.url = "http://127.0.0.1:" + port.number(), .retries = 1});
  bench.add("1");
  bench.add("2");
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.failed, 2U);
  EXPECT_EQ(counters.retried, 2U);
  EXPECT_EQ(counters.pushed, 0U);
}

TEST(Pusher, RepeatsRequestsThatASlowServerDoesNotAnswer) {
  MockPyroscope server;
  server.hold(true);
  PusherOptions options = kQuick;
  options.timeout = milliseconds(100);
  const Bench bench(PushConfig{.url = server.url(), .retries = 100}, options);
  bench.add("1");
  EXPECT_EQ(server.requests(2).size(), 2U);
  server.hold(false);
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 1U);
  EXPECT_GE(counters.retried, 1U);
}

TEST(Pusher, StopsAtOnce) {
  // While a server hangs, and while it waits for the next try.
  MockPyroscope hanging;
  hanging.hold(true);
  MockPyroscope failing;
  failing.answer({status(503)});
  for (MockPyroscope* const server : {&hanging, &failing}) {
    constexpr std::chrono::minutes kLong(10);
    ::testing::internal::CaptureStderr();
    Bench bench(PushConfig{.url = server->url()},
                {.timeout = kLong, .first_pause = kLong, .max_pause = kLong});
    bench.add("1");
    bench.add("2");
    server->requests(1);
    EXPECT_EQ(bench.pusher->counters().queued, 2U);
    EXPECT_GT(bench.pusher->counters().queued_bytes, 200U);
    const auto start = steady_clock::now();
    bench.pusher.reset();
    EXPECT_LT(steady_clock::now() - start, testing::kPatience) << server->url();
    const std::string lines = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(count(lines, "\n"), count(lines, "status 503")) << lines;
  }
  // Without anything to do, there is no thread.
  const Bench idle(PushConfig{});
}

TEST(Pusher, DropsTheOldestWhenTheQueueIsFull) {
  MockPyroscope server;
  server.hold(true);
  ::testing::internal::CaptureStderr();
  const Bench bench(PushConfig{.url = server.url(), .queue_size = 3});
  bench.add("1");
  server.requests(1);  // it is in flight, not in the queue
  for (const char* unit : {"2", "3", "4", "5", "6"}) {
    bench.add(unit);
  }
  EXPECT_EQ(bench.pusher->counters().queued, 4U);
  EXPECT_EQ(bench.pusher->counters().dropped, 2U);
  server.hold(false);
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 4U);
  EXPECT_EQ(counters.dropped, 2U);
  EXPECT_THAT(units(server.requests(4)), ElementsAre("1", "4", "5", "6"));
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(lines, "the queue of profiles is full"), 1U) << lines;
}

TEST(Pusher, BoundsTheBytesOfTheQueue) {
  MockPyroscope server;
  server.hold(true);
  PusherOptions options = kQuick;
  options.max_queue_bytes = 1000;  // four small profiles
  const Bench bench(PushConfig{.url = server.url()}, options);
  bench.add("1");
  server.requests(1);
  for (int i = 0; i < 20; ++i) {
    bench.add("2");
    EXPECT_LE(bench.pusher->counters().queued_bytes, 1000U);
  }
  EXPECT_GE(bench.pusher->counters().queued, 2U);
  // One that alone is too large is dropped, with all others.
  ASSERT_TRUE(bench.pusher->add({.service_name = "3", .pid = "1"}, many_stacks(100)));
  EXPECT_EQ(bench.pusher->counters().queued, 1U);
  server.hold(false);
  const PushCounters counters = bench.finished();
  EXPECT_EQ(counters.pushed, 1U);
  EXPECT_EQ(counters.dropped, 21U);
}

TEST(Pusher, LogsInWithAPassword) {
  const ceems::testing::TempDir dir;
  // bcrypt of "secret" with cost 4, made with crypt(3).
  const std::string web = dir.write(
      "web.yml",
      "basic_auth_users:\n  alice: $2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n");
  MockPyroscope server({.listen_addresses = {}, .web_config_file = web});
  PushConfig config{.url = server.url()};
  config.client.basic_auth = {.username = "alice", .password = "secret"};
  {
    const Bench bench(config);
    bench.add("1");
    EXPECT_EQ(bench.finished().pushed, 1U);
  }
  config.client.basic_auth->password = "wr0ng";
  ::testing::internal::CaptureStderr();
  {
    const Bench bench(config);
    bench.add("1");
    EXPECT_EQ(bench.finished().failed, 1U);
  }
  const std::string lines = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr("status 401"));
  EXPECT_THAT(lines, Not(HasSubstr("wr0ng")));
}

TEST(Pusher, SpeaksTlsAndChecksTheCertificate) {
  const ceems::testing::TempDir dir;
  const net::TestCertificate ca = net::make_certificate("ca", {});
  const net::TestCertificate leaf = net::make_certificate("localhost", {"IP:127.0.0.1"}, &ca);
  dir.write("cert.pem", leaf.cert);
  dir.write("key.pem", leaf.key);
  const std::string web =
      dir.write("web.yml", "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n");
  MockPyroscope server({.listen_addresses = {}, .web_config_file = web});
  PushConfig config{.url = "https://" + server.address(), .retries = 0};
  config.client.tls.ca_file = dir.write("ca.pem", ca.cert);
  {
    const Bench bench(config);
    bench.add("1");
    EXPECT_EQ(bench.finished().pushed, 1U);
  }
  config.client.tls = {};
  const Bench bench(config);
  bench.add("2");
  EXPECT_EQ(bench.finished().failed, 1U);
  EXPECT_THAT(units(server.requests(1)), ElementsAre("1"));
}

TEST(Pusher, CannotBeMadeWithoutItsFiles) {
  PushConfig config;
  config.client.tls.ca_file = "/nonexistent/ca.pem";
  const testing::FakeClock clock;
  const auto pusher = Pusher::create(config, clock);
  ASSERT_FALSE(pusher);
  EXPECT_THAT(pusher.error().message, HasSubstr("/nonexistent/ca.pem"));
}

}  // namespace
}  // namespace ceems::exporter::profile
