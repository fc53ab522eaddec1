#include "export/push/sender.h"

#include <deque>
#include <set>

#include <gmock/gmock.h>

#include "base/mutex.h"
#include "export/push/test_messages.h"
#include "net/server/server.h"
#include "store/factory/open_database.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::exporting {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kNow = 1'767'225'600'000;  // 2026-01-01T00:00:00Z, as the clock
constexpr std::int64_t kHour = 3'600'000;
constexpr SenderOptions kOptions{.poll = std::chrono::milliseconds(20),
                                 .first_pause = std::chrono::milliseconds(10),
                                 .max_pause = std::chrono::milliseconds(40),
                                 .batch = 4};

/// Stands in for Prometheus: keeps the ids of the units of each request that it takes.
class Receiver {
 public:
  Receiver() {
    net::ServerOptions options;
    options.listen_addresses = {"127.0.0.1:0"};
    auto server = net::Server::create(
        options,
        [this](const net::Request& request, net::Response& response) { serve(request, response); });
    EXPECT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    server_->start();
  }
  ~Receiver() { server_->stop(); }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  [[nodiscard]] std::string url() const { return "http://" + server_->addresses()[0] + "/write"; }
  /// The statuses of the next requests; then 204.
  void answer(std::deque<int> statuses) {
    const MutexLock lock(mutex_);
    statuses_ = std::move(statuses);
  }
  /// Requests with this unit get this status.
  void refuse(const std::string& uuid, int status) {
    const MutexLock lock(mutex_);
    refused_ = uuid;
    refusal_ = status;
  }
  /// The units of each request that was taken: "1 2".
  std::vector<std::string> taken() {
    const MutexLock lock(mutex_);
    return taken_;
  }
  std::size_t requests() {
    const MutexLock lock(mutex_);
    return requests_;
  }

 private:
  void serve(const net::Request& request, net::Response& response) {
    const MutexLock lock(mutex_);
    ++requests_;
    std::string units;
    bool refused = false;
    const std::string* encoding = net::find_header(request.headers, "Content-Encoding");
    EXPECT_TRUE(encoding != nullptr && *encoding == "snappy");
    for (const std::string& line : decode_write(decode_snappy(request.body))) {
      if (line.starts_with("ceems_unit_walltime_seconds")) {
        const std::size_t at = line.find("uuid=\"") + 6;
        const std::string uuid = line.substr(at, line.find('"', at) - at);
        units += (units.empty() ? "" : " ") + uuid;
        refused = refused || uuid == refused_;
      }
    }
    response.status = refused ? refusal_ : 204;
    if (!statuses_.empty()) {
      response.status = statuses_.front();
      statuses_.pop_front();
    }
    if (response.status == 302) {
      response.headers.emplace_back("Location", "/login");
    }
    if (response.status == 204) {
      taken_.push_back(units);
    }
  }

  Mutex mutex_;
  std::deque<int> statuses_ CEEMS_GUARDED_BY(mutex_);
  std::string refused_ CEEMS_GUARDED_BY(mutex_);
  int refusal_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> taken_ CEEMS_GUARDED_BY(mutex_);
  std::size_t requests_ CEEMS_GUARDED_BY(mutex_) = 0;
  std::unique_ptr<net::Server> server_;  ///< last, because it uses all other members
};

class SenderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened =
        store::open_database({.directory = dir_.path().string(), .time_zone = "UTC"}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
    auto targets = database_->open_targets();
    ASSERT_TRUE(targets);
    ASSERT_TRUE((*targets)->set({"p"}));
  }

  void end(const std::vector<std::string>& uuids) {
    store::ClusterUpdate update;
    update.cluster = {.id = "hpc", .manager = "slurm", .updaters = {}};
    update.window = {.start_ms = window_, .end_ms = window_ + kHour};
    window_ += kHour;
    for (const std::string& uuid : uuids) {
      model::Unit& unit = update.units.emplace_back();
      unit.resource_manager = "slurm";
      unit.uuid = uuid;
      unit.username = "ada";
      unit.project = "fluids";
      unit.started_at = "s";
      unit.created_at_ts = unit.started_at_ts = kNow - 2 * kHour;
      unit.ended_at_ts = kNow - kHour;
      unit.ended_at = "e";
      unit.state = "COMPLETED";
    }
    const auto written = database_->writer().write(update);
    ASSERT_TRUE(written) << written.error().message;
  }
  std::unique_ptr<Sender> sender() {
    auto made = Sender::create(
        {.name = "p", .url = receiver_.url()}, database_->reader(),
        [this] { return database_->open_targets(); }, registry_, clock_, kOptions);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  /// Steps until there is nothing to do at once, at most so often.
  static void work(Sender& sender, int most = 100) {
    while (most-- > 0 && sender.step({}) != kOptions.poll) {
    }
  }
  std::uint64_t count(const std::string& name) {
    return registry_.counters(name, {}, {"target"}).with({"p"}).value();
  }
  double gauge(const std::string& name) {
    return registry_.gauges(name, {}, {"target"}).with({"p"}).value();
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
  std::unique_ptr<store::Database> database_;
  metrics::Registry registry_{"test", "the test"};
  Receiver receiver_;
  std::int64_t window_ = kNow;
};

TEST_F(SenderTest, SendsWhatHasEndedOnceInBatches) {
  const auto first = sender();
  work(*first);
  EXPECT_EQ(receiver_.requests(), 0U);
  end({"1", "2", "3", "4", "5", "6"});
  EXPECT_EQ(first->step({}).count(), 0);
  EXPECT_EQ(gauge("ceems_api_server_export_waiting_units"), 6);
  EXPECT_EQ(gauge("ceems_api_server_export_lag_seconds"), 3600);
  work(*first);
  EXPECT_THAT(receiver_.taken(), ElementsAre("1 2 3 4", "5 6"));
  work(*first);
  EXPECT_EQ(receiver_.requests(), 2U);
  EXPECT_EQ(count("ceems_api_server_export_sent_units_total"), 6U);
  EXPECT_EQ(gauge("ceems_api_server_export_waiting_units"), 0);
  EXPECT_EQ(gauge("ceems_api_server_export_lag_seconds"), 0);
  // Another program goes on behind the last unit.
  end({"7"});
  work(*sender());
  EXPECT_EQ(receiver_.taken().back(), "7");
}

TEST_F(SenderTest, RepeatsWhatWasNotTakenWithLongerAndLongerPauses) {
  end({"1", "2"});
  receiver_.answer({500, 429, 401, 404, 503, 302});
  const auto one = sender();
  std::vector<int> pauses;
  for (int i = 0; i < 6; ++i) {
    pauses.push_back(static_cast<int>(one->step({}).count()));
  }
  EXPECT_THAT(pauses, ElementsAre(10, 20, 40, 40, 40, 40));
  EXPECT_THAT(receiver_.taken(), IsEmpty());
  work(*one);
  EXPECT_THAT(receiver_.taken(), ElementsAre("1 2"));
  EXPECT_EQ(count("ceems_api_server_export_failures_total"), 6U);
  EXPECT_EQ(count("ceems_api_server_export_rejected_units_total"), 0U);
}

TEST_F(SenderTest, LeavesOutAUnitThatIsRefusedAlone) {
  end({"1", "2", "3", "bad", "5", "6", "7", "8"});
  receiver_.refuse("bad", 400);
  work(*sender());
  EXPECT_THAT(receiver_.taken(), ElementsAre("1 2", "3", "5", "6 7", "8"));
  EXPECT_EQ(count("ceems_api_server_export_rejected_units_total"), 1U);
  EXPECT_EQ(count("ceems_api_server_export_sent_units_total"), 7U);
}

TEST_F(SenderTest, AReceiverThatHasTakenNothingIsTriedForLonger) {
  end({"1", "2"});
  receiver_.answer(std::deque<int>(14, 400));  // a wrong URL, which somebody mends
  const auto one = sender();
  EXPECT_EQ(one->step({}).count(), 0);  // half as many
  for (int i = 0; i < 10; ++i) {
    EXPECT_GT(one->step({}).count(), 0) << i;
  }
  EXPECT_EQ(count("ceems_api_server_export_rejected_units_total"), 0U);
  EXPECT_EQ(one->step({}).count(), 0);
  EXPECT_EQ(count("ceems_api_server_export_rejected_units_total"), 1U);
  work(*one);
  EXPECT_THAT(receiver_.taken(), ElementsAre("2"));
}

TEST_F(SenderTest, NothingIsLostWhenSendersStopAtAnyTime) {
  end({"1", "2", "3", "4", "5", "6", "7", "8", "9"});
  std::set<std::string> seen;
  for (int round = 0; round < 20; ++round) {
    const auto one = sender();  // each is forgotten after one request, as if it was killed
    static_cast<void>(one->step({}));
    if (round % 3 == 0) {
      receiver_.answer({503});
    }
  }
  for (const std::string& units : receiver_.taken()) {
    for (std::size_t at = 0; at < units.size(); at += 2) {
      EXPECT_TRUE(seen.insert(units.substr(at, 1)).second) << units;
    }
  }
  EXPECT_EQ(seen.size(), 9U);
}

TEST_F(SenderTest, AThreadForEachTargetWorksUntilAStop) {
  auto senders = Senders::create(
      {{.name = "p", .url = receiver_.url()}, {.name = "down", .url = "http://127.0.0.1:1/"}},
      *database_, registry_, clock_, kOptions);
  ASSERT_TRUE(senders);
  (*senders)->start();
  end({"1"});
  EXPECT_TRUE(testing::eventually([this] { return receiver_.taken().size() == 1; }));
  EXPECT_TRUE(testing::eventually([this] {
    return registry_.counters("ceems_api_server_export_failures_total", {}, {"target"})
               .with({"down"})
               .value() > 1;
  }));
  (*senders)->stop();
  (*senders)->stop();
  // Without targets, nothing is listed any more.
  auto none = Senders::create({}, *database_, registry_, clock_, kOptions);
  ASSERT_TRUE(none);
  (*none)->start();
  EXPECT_TRUE(testing::eventually([this] {
    auto targets = database_->open_targets();
    return targets && !(*targets)->position("p");
  }));
  (*none)->stop();
}

}  // namespace
}  // namespace ceems::exporting
