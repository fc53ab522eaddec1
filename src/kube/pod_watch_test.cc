#include "kube/pod_watch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::kube {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using testing::eventually;
using ::testing::HasSubstr;
using testing::kPatience;

std::string pod(const std::string& uid, const std::string& version, const std::string& phase) {
  return fmt::format(
      R"({{"metadata":{{"uid":"{}","name":"p","namespace":"n","resourceVersion":"{}"}},)"
      R"("status":{{"phase":"{}"}}}})",
      uid, version, phase);
}

std::string event(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

std::string pod_list(const std::string& version, const std::string& items) {
  return R"({"metadata":{"resourceVersion":")" + version + R"("},"items":[)" + items + "]}";
}

/// The parts of an API server that a list and a watch of pods need. A function answers the
/// requests; a watch sends what the test pushes, until the test drops it.
class FakeApiServer {
 public:
  /// Maps the path and query of a request to status and body. A watch with status 200 is streamed.
  using Answer = std::function<std::pair<int, std::string>(const std::string& target)>;

  explicit FakeApiServer(Answer answer) : answer_(std::move(answer)) {
    listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = fmt::format("http://127.0.0.1:{}", ntohs(address.sin_port));
    acceptor_ = std::jthread([this](const std::stop_token& stop) { accept(stop); });
  }
  ~FakeApiServer() {
    acceptor_.request_stop();
    ::shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (auto& connection : connections_) {
      connection.request_stop();
    }
  }
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  void push(std::string bytes) {
    const MutexLock lock(mutex_);
    queue_.push_back(std::move(bytes));
  }
  /// Ends the open watch, or else the next one.
  void drop() { push(""); }
  std::vector<std::string> targets() {
    const MutexLock lock(mutex_);
    return targets_;
  }

 private:
  void accept(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      UniqueFd peer(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (peer.valid()) {
        connections_.emplace_back(
            [this, fd = std::move(peer)](const std::stop_token& own) { serve(fd.get(), own); });
      }
    }
  }
  static void send(int fd, const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
      const ssize_t count = ::send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) {
        return;
      }
      sent += static_cast<std::size_t>(count);
    }
  }
  void serve(int fd, const std::stop_token& stop) {
    std::string head;
    std::array<char, 4096> piece{};
    while (head.find("\r\n\r\n") == std::string::npos) {
      pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&ready, 1, 20) == 0) {
        if (stop.stop_requested()) {
          return;
        }
        continue;
      }
      const ssize_t count = ::read(fd, piece.data(), piece.size());
      if (count <= 0) {
        return;
      }
      head.append(piece.data(), static_cast<std::size_t>(count));
    }
    const std::string target = head.substr(4, head.find(' ', 4) - 4);
    {
      const MutexLock lock(mutex_);
      targets_.push_back(target);
    }
    const auto [status, body] = answer_(target);
    if (status != 200 || target.find("watch=true") == std::string::npos) {
      send(fd, fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                           status, body.size(), body));
      return;
    }
    send(fd, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    while (!stop.stop_requested()) {
      pollfd peer{.fd = fd, .events = POLLIN, .revents = 0};
      if (::poll(&peer, 1, 0) > 0) {
        return;  // the client hung up
      }
      std::optional<std::string> next;
      {
        const MutexLock lock(mutex_);
        if (!queue_.empty()) {
          next = std::move(queue_.front());
          queue_.pop_front();
        }
      }
      if (next && next->empty()) {
        return;
      }
      if (next) {
        send(fd, *next);
      } else {
        std::this_thread::sleep_for(milliseconds(2));
      }
    }
  }

  Answer answer_;
  std::string url_;
  UniqueFd listener_;
  Mutex mutex_;
  std::deque<std::string> queue_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::string> targets_ CEEMS_GUARDED_BY(mutex_);
  std::list<std::jthread> connections_;  // used by the acceptor only
  std::jthread acceptor_;
};

bool is_watch(const std::string& target) {
  return target.find("watch=true") != std::string::npos;
}

class PodWatchTest : public ::testing::Test {
 protected:
  void serve(FakeApiServer::Answer answer) {
    server_ = std::make_unique<FakeApiServer>(std::move(answer));
    PodWatchOptions options{.cluster_id = "c",
                            .connect = [this](const std::stop_token&) -> Result<Connection> {
                              return Connection{.server = server_->url(), .options = {}};
                            }};
    options.first_pause = milliseconds(20);
    options.max_pause = milliseconds(50);
    options.idle_timeout = idle_timeout_;
    options.max_event_bytes = max_event_bytes_;
    watch_ = std::make_unique<PodWatch>(std::move(options), clock_);
  }
  /// Returns "uid phase" for each pod, and "uid -" for deleted ones.
  std::vector<std::string> pods() {
    const auto found = watch_->pods(kPatience, {});
    if (!found) {
      return {found.error().message};
    }
    std::vector<std::string> names;
    for (const auto& stored : *found) {
      names.push_back(stored->pod.uid + " " + (stored->gone_ms > 0 ? "-" : stored->pod.phase));
    }
    std::ranges::sort(names);
    return names;
  }
  /// Returns pods() as soon as it equals `expected`, or its last value.
  std::vector<std::string> pods_become(const std::vector<std::string>& expected) {
    std::vector<std::string> seen;
    static_cast<void>(eventually([&] {
      seen = pods();
      return seen == expected;
    }));
    return seen;
  }
  /// Why there are no pods, as soon as it is `expected`, or the last reason.
  std::string error_becomes(const std::string& expected) {
    std::string seen;
    static_cast<void>(eventually([&] {
      const auto found = watch_->pods(milliseconds(1), {});
      seen = found ? "none" : found.error().message;
      EXPECT_TRUE(found || found.error().code == ErrorCode::kUnavailable);
      return seen == expected;
    }));
    return seen;
  }
  std::vector<std::string> watches() {
    auto targets = server_->targets();
    std::erase_if(targets, [](const std::string& target) { return !is_watch(target); });
    return targets;
  }
  std::size_t lists() { return server_->targets().size() - watches().size(); }

  milliseconds idle_timeout_ = kPatience;
  std::size_t max_event_bytes_ = std::size_t{1} << 20U;
  testing::FakeClock clock_;
  std::unique_ptr<FakeApiServer> server_;
  std::unique_ptr<PodWatch> watch_;
};

TEST_F(PodWatchTest, ListsInPartsAndThenFollowsEvents) {
  serve([](const std::string& target) -> std::pair<int, std::string> {
    if (is_watch(target)) {
      return {200, ""};
    }
    if (target.find("continue=") == std::string::npos) {
      return {200, R"({"metadata":{"resourceVersion":"5","continue":"x y"},"items":[)" +
                       pod("a", "1", "Running") + "]}"};
    }
    return {200, pod_list("5", pod("b", "2", "Pending"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running", "b Pending"));
  server_->push(event("MODIFIED", pod("b", "6", "Running")) +
                event("ADDED", pod("c", "7", "Pending")));
  server_->push(event("DELETED", pod("a", "8", "Running")).substr(0, 30));
  server_->push(event("DELETED", pod("a", "8", "Running")).substr(30));
  EXPECT_THAT(pods_become({"a -", "b Running", "c Pending"}),
              ElementsAre("a -", "b Running", "c Pending"));
  watch_->forget({"a", "b"});
  EXPECT_THAT(pods(), ElementsAre("b Running", "c Pending"));
  const auto targets = server_->targets();
  ASSERT_EQ(targets.size(), 3U);
  EXPECT_EQ(targets[0], "/api/v1/pods?limit=250");
  EXPECT_EQ(targets[1], "/api/v1/pods?limit=250&continue=x%20y");
  EXPECT_EQ(
      targets[2],
      "/api/v1/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds=1800&resourceVersion=5");
}

TEST_F(PodWatchTest, ResumesWhereADroppedConnectionWas) {
  serve([](const std::string& target) -> std::pair<int, std::string> {
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running"));
  server_->push(event("ADDED", pod("b", "9", "Pending")));
  server_->push(event("BOOKMARK", R"({"kind":"Pod","metadata":{"resourceVersion":"12"}})"));
  server_->drop();
  server_->push(event("MODIFIED", pod("b", "13", "Running")));
  EXPECT_THAT(pods_become({"a Running", "b Running"}), ElementsAre("a Running", "b Running"));
  EXPECT_EQ(lists(), 1U);
  ASSERT_EQ(watches().size(), 2U);
  EXPECT_THAT(watches()[1], HasSubstr("resourceVersion=12"));
}

TEST_F(PodWatchTest, ReadsTheListAgainWhenItsPlaceIsTooOld) {
  const auto list_number = std::make_shared<std::atomic<int>>(0);  // the server outlives the test
  serve([list_number](const std::string& target) -> std::pair<int, std::string> {
    if (is_watch(target)) {
      return {200, ""};
    }
    return {200, ++*list_number == 1
                     ? pod_list("5", pod("a", "1", "Running") + "," + pod("b", "2", "Running"))
                     : pod_list("50", pod("b", "2", "Succeeded"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running", "b Running"));
  server_->push(event("ERROR", R"({"kind":"Status","code":410,"message":"too old"})"));
  EXPECT_THAT(pods_become({"a -", "b Succeeded"}), ElementsAre("a -", "b Succeeded"));
  EXPECT_EQ(lists(), 2U);
}

TEST_F(PodWatchTest, ReadsTheListAgainWhenAWatchAnswers410) {
  const auto watch_number = std::make_shared<std::atomic<int>>(0);  // the server outlives the test
  serve([watch_number](const std::string& target) -> std::pair<int, std::string> {
    if (!is_watch(target)) {
      return {200, pod_list("5", pod("a", "1", "Running"))};
    }
    return {++*watch_number == 1 ? 410 : 200, R"({"kind":"Status","code":410})"};
  });
  EXPECT_TRUE(eventually([&] {
    EXPECT_THAT(pods(), ElementsAre("a Running"));
    return *watch_number >= 2;
  }));
  EXPECT_EQ(lists(), 2U);
}

TEST_F(PodWatchTest, SurvivesGarbage) {
  serve([](const std::string& target) -> std::pair<int, std::string> {
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running"));
  server_->push("{\"type\": garbage\n");
  EXPECT_TRUE(eventually([this] { return lists() >= 2; }));
  server_->push(event("MODIFIED", "{\"metadata\":{\"uid\":5}}"));
  server_->push(event("MODIFIED", pod("a", "9", "Failed")));
  EXPECT_THAT(pods_become({"a Failed"}), ElementsAre("a Failed"));
}

TEST_F(PodWatchTest, SkipsAnEventThatIsTooLong) {
  max_event_bytes_ = 10'000;
  serve([](const std::string& target) -> std::pair<int, std::string> {
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running"));
  server_->push(event("ADDED", pod("big", "6", std::string(50'000, 'x'))));
  server_->push(event("ADDED", pod("b", "7", "Running")));
  EXPECT_THAT(pods_become({"a Running", "b Running"}), ElementsAre("a Running", "b Running"));
  EXPECT_EQ(watches().size(), 1U);
}

TEST_F(PodWatchTest, WaitsForAServerThatIsDown) {
  const auto is_up = std::make_shared<std::atomic<bool>>(false);  // the server outlives the test
  serve([is_up](const std::string& target) -> std::pair<int, std::string> {
    if (!*is_up) {
      return {503, R"({"kind":"Status","message":"etcd is away"})"};
    }
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  const std::string none = "pods have not been listed yet: HTTP status 503: etcd is away";
  EXPECT_EQ(error_becomes(none), none);
  *is_up = true;
  EXPECT_THAT(pods(), ElementsAre("a Running"));
}

TEST_F(PodWatchTest, ReportsWhenTheViewIsNotComplete) {
  const auto is_up = std::make_shared<std::atomic<bool>>(true);  // the server outlives the test
  serve([is_up](const std::string& target) -> std::pair<int, std::string> {
    if (!*is_up) {
      return {500, ""};
    }
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running"));
  server_->push(event("MODIFIED", pod("a", "6", "Succeeded")));
  EXPECT_THAT(pods_become({"a Succeeded"}), ElementsAre("a Succeeded")) << "the watch is open";
  *is_up = false;
  server_->drop();
  EXPECT_TRUE(eventually([this] { return watches().size() >= 3; })) << "the second has failed";
  EXPECT_THAT(pods(), ElementsAre("a Succeeded")) << "in the first seconds it counts as complete";
  clock_.advance(std::chrono::seconds(6));
  const std::string stale = "the watch of pods is interrupted: watch of pods: HTTP status 500";
  EXPECT_EQ(error_becomes(stale), stale);
}

TEST_F(PodWatchTest, ReadsListsIfItMayNotWatch) {
  const auto list_number = std::make_shared<std::atomic<int>>(0);  // the server outlives the test
  serve([list_number](const std::string& target) -> std::pair<int, std::string> {
    if (is_watch(target)) {
      return {403, R"({"kind":"Status","message":"cannot watch"})"};
    }
    return {200, pod_list("5", ++*list_number == 1 ? "" : pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods_become({"a Running"}), ElementsAre("a Running"));
}

TEST_F(PodWatchTest, ReconnectsWhenNothingArrives) {
  idle_timeout_ = milliseconds(100);
  serve([](const std::string& target) -> std::pair<int, std::string> {
    return {200, is_watch(target) ? "" : pod_list("5", pod("a", "1", "Running"))};
  });
  EXPECT_THAT(pods(), ElementsAre("a Running"));
  EXPECT_TRUE(eventually([this] { return watches().size() >= 2; }));
  EXPECT_EQ(lists(), 1U);
}

TEST_F(PodWatchTest, EndsWhileTheServerIsSilent) {
  idle_timeout_ = std::chrono::minutes(10);
  serve([](const std::string& target) -> std::pair<int, std::string> {
    return {200, is_watch(target) ? "" : pod_list("5", "")};
  });
  EXPECT_TRUE(pods().empty());
  EXPECT_TRUE(eventually([this] { return !watches().empty(); }));
  const auto begin = std::chrono::steady_clock::now();
  watch_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

TEST_F(PodWatchTest, StopsWaitingOnAStopRequest) {
  serve([](const std::string&) -> std::pair<int, std::string> { return {500, ""}; });
  std::stop_source stop;
  stop.request_stop();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(watch_->pods(std::chrono::minutes(10), stop.get_token()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kPatience);
}

}  // namespace
}  // namespace ceems::kube
