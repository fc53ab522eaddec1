#include "audit/log.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"
#include "testing/fake_clock.h"
#include "testing/temp_dir.h"

namespace ceems::audit {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class AuditTest : public ::testing::Test {
 protected:
  std::unique_ptr<Log> open(Options options) {
    auto log = Log::open(options, "ceems_lb", clock_);
    EXPECT_TRUE(log) << log.error().message;
    return log ? std::move(*log) : nullptr;
  }
  [[nodiscard]] std::string file(const std::string& name = "audit.log") const {
    return (dir_.path() / name).string();
  }
  [[nodiscard]] std::string text(const std::string& name = "audit.log") const {
    std::ifstream in(file(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// The socket of a journal.
  [[nodiscard]] UniqueFd listen() const {
    UniqueFd receiver(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(file("s"), address.sun_path);
    EXPECT_EQ(::bind(receiver.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)),
              0);
    return receiver;
  }

  testing::TempDir dir_;
  testing::FakeClock clock_;
};

TEST_F(AuditTest, ALineIsOneJsonObject) {
  clock_.step_to(Clock::SystemTime(std::chrono::milliseconds(1'767'225'600'123)));
  const auto log = open({.file = file()});
  net::Request request;
  request.method = "GET";
  request.path = "/api/v1/query";
  request.query = "secret=1";
  request.headers = {{"Authorization", "Basic secret"}};
  request.remote_address = "192.0.2.1";
  log->write({.what = What::kRead,
              .user = "ro\"ot\n",
              .role = "admin",
              .request = &request,
              .status = 200,
              .selected = {{"query", {"up{uuid=\"1\"}"}}, {"uuid", {}}}});
  EXPECT_EQ(text(), R"({"time":"2026-01-01T00:00:00.123Z","program":"ceems_lb","event":"read",)"
                    R"("user":"ro\"ot\n","role":"admin","peer":"192.0.2.1","method":"GET",)"
                    R"("path":"/api/v1/query","status":200,"query":["up{uuid=\"1\"}"]})"
                    "\n");
  log->write({.status = 403, .reason = "foreign_unit"});
  EXPECT_THAT(text(), EndsWith(R"("event":"denied","user":"","role":"","path":"","status":403,)"
                               R"("reason":"foreign_unit"})"
                               "\n"));
  EXPECT_THAT(text(), Not(HasSubstr("secret")));
}

TEST_F(AuditTest, ALineIsShortWhateverClientsSend) {
  const auto log = open({.file = file()});
  net::Request request;
  request.method = std::string(10'000, 'G');
  request.path = std::string(10'000, '/');
  log->write({.user = std::string(10'000, 'u'),
              .request = &request,
              .selected = {{"uuid", std::vector<std::string>(1000, "1")}}});
  EXPECT_THAT(text(), HasSubstr("\"uuid_more\":950"));
  EXPECT_LT(text().size(), 2500U);
}

TEST_F(AuditTest, IsReopenedAfterAnExternalRotation) {
  const auto log = open({.file = file()});
  log->write({.user = "a"});
  std::filesystem::rename(file(), file("old"));
  log->write({.user = "b"});
  log->reopen();
  log->write({.user = "c"});
  EXPECT_THAT(text("old"), AllOf(HasSubstr("\"a\""), HasSubstr("\"b\"")));
  EXPECT_THAT(text(), AllOf(HasSubstr("\"c\""), Not(HasSubstr("\"b\""))));
}

TEST_F(AuditTest, IsRotatedBySize) {
  const auto log = open({.file = file(), .max_bytes = 250, .keep = 2});
  for (const std::string user : {"a", "b", "c", "d", "e", "f", "g"}) {
    log->write({.user = user});  // some 110 bytes
  }
  EXPECT_THAT(text(), HasSubstr("\"g\""));
  EXPECT_THAT(text("audit.log.1"), AllOf(HasSubstr("\"e\""), HasSubstr("\"f\"")));
  EXPECT_THAT(text("audit.log.2"), AllOf(HasSubstr("\"c\""), HasSubstr("\"d\"")));
  EXPECT_FALSE(std::filesystem::exists(file("audit.log.3")));
  EXPECT_EQ(log->lost(), 0U);
}

TEST_F(AuditTest, GoesToTheJournal) {
  const UniqueFd receiver = listen();
  const auto log = open({.journal = true, .journal_socket = file("s")});
  log->write({.user = "eve"});
  std::array<char, 1000> buffer{};
  const ssize_t size = ::recv(receiver.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  ASSERT_GT(size, 0);
  const std::string entry(buffer.data(), static_cast<std::size_t>(size));
  EXPECT_THAT(entry, ::testing::StartsWith("SYSLOG_IDENTIFIER=ceems-audit\nPRIORITY=5\n"
                                           "CEEMS_PROGRAM=ceems_lb\nMESSAGE={\"time\":"));
  EXPECT_THAT(entry, AllOf(HasSubstr("\"user\":\"eve\""), EndsWith("}\n")));
}

TEST_F(AuditTest, IsNotOpenedWhereNothingCanBeWritten) {
  EXPECT_FALSE(Log::open({.file = "/dev/null"}, "p", clock_));  // not a regular file
  EXPECT_FALSE(Log::open({.file = file("missing/audit.log")}, "p", clock_));
  EXPECT_FALSE(Log::open({.journal = true, .journal_socket = file("s")}, "p", clock_));
  EXPECT_FALSE(Log::open({}, "p", clock_));
}

TEST_F(AuditTest, LostLinesAreCounted) {
  std::unique_ptr<Log> log;
  {
    const UniqueFd journal = listen();
    log = open({.journal = true, .journal_socket = file("s")});
    log->write({.user = "a"});
    EXPECT_EQ(log->lost(), 0U);
  }
  log->write({.user = "b"});
  log->write({.user = "c"});
  EXPECT_EQ(log->lost(), 2U);
  std::filesystem::remove(file("s"));
  const UniqueFd journal = listen();  // it was restarted
  log->write({.user = "d"});
  EXPECT_EQ(log->lost(), 2U);
}

std::string read(const std::string& yaml, Options* options = nullptr) {
  const auto document = config::parse_yaml(yaml, "c.yml");
  auto got = read_options((*document)["audit"], "/etc/ceems");
  if (got && options != nullptr) {
    *options = *got;
  }
  return got ? "" : got.error().message;
}

TEST(AuditConfig, KeysAreRead) {
  Options options;
  EXPECT_EQ(read("x: 1", &options), "");
  EXPECT_FALSE(options.enabled());
  EXPECT_EQ(read("audit: {file: a.log, max_megabytes: 2, keep: 3}", &options), "");
  EXPECT_EQ(options, (Options{.file = "/etc/ceems/a.log", .max_bytes = 2'000'000, .keep = 3}));
  EXPECT_EQ(read("audit: {journal: true}", &options), "");
  EXPECT_TRUE(options.journal);
  for (const char* wrong : {"{}", "{file: a, journal: true}", "{file: a, keep: 0}",
                            "{file: a, max_megabytes: -1}", "{fil: a}", "[]"}) {
    EXPECT_THAT(read(std::string("audit: ") + wrong), HasSubstr("c.yml:1")) << wrong;
  }
}

}  // namespace
}  // namespace ceems::audit
