#include "net/server/listen.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <gtest/gtest.h>

#include "net/server/port_holder.h"
#include "net/testing/test_client.h"
#include "testing/temp_dir.h"

namespace ceems::net {
namespace {

TEST(ListenAddress, ReadsEveryForm) {
  const auto text = [](std::string_view given) {
    const auto address = parse_listen_address(given);
    if (!address) {
      return address.error().message;
    }
    constexpr std::array<const char*, 3> kKinds = {"tcp", "vsock", "unix"};
    return std::string(kKinds.at(static_cast<std::size_t>(address->kind))) + " " + address->host +
           " " + std::to_string(address->port) + " " + address->path;
  };
  EXPECT_EQ(text(""), "tcp  0 ");
  EXPECT_EQ(text(":9010"), "tcp  9010 ");
  EXPECT_EQ(text("localhost:9010"), "tcp localhost 9010 ");
  EXPECT_EQ(text("10.1.2.3:80"), "tcp 10.1.2.3 80 ");
  EXPECT_EQ(text("[10.1.2.3]:80"), "tcp 10.1.2.3 80 ");
  EXPECT_EQ(text("[::1]:80"), "tcp ::1 80 ");
  EXPECT_EQ(text("[fe80::1%eth0]:80"), "tcp fe80::1%eth0 80 ");
  EXPECT_EQ(text("vsock://:4294967294"), "vsock  4294967294 ");
  EXPECT_EQ(text("unix:/run/x.sock"), "unix  0 /run/x.sock");
  EXPECT_EQ(text("9010"), "listen address '9010': the port is missing");
  EXPECT_EQ(text("[::1]"), "listen address '[::1]': the port is missing");
  EXPECT_EQ(text("::1:80"),
            "listen address '::1:80': write an IPv6 address in brackets, as in [::1]:9010");
  EXPECT_EQ(text("h:http"), "listen address 'h:http': expected a port from 0 to 65535, got 'http'");
  EXPECT_EQ(text("h:"), "listen address 'h:': expected a port from 0 to 65535, got ''");
  EXPECT_EQ(text("h:-1"), "listen address 'h:-1': expected a port from 0 to 65535, got '-1'");
  EXPECT_EQ(text("vsock://2:80"), "listen address 'vsock://2:80': expected vsock://:PORT");
  EXPECT_EQ(text("unix:"), "listen address 'unix:': expected a path behind 'unix:'");
}

TEST(ListenOn, ReplacesASocketFileNobodyListensOnAndNoOther) {
  const ceems::testing::TempDir directory;
  ListenAddress address;
  address.kind = ListenAddress::Kind::kUnix;
  address.path = (directory.path() / "s").string();
  {
    const auto gone = listen_on(address);
    ASSERT_TRUE(gone) << gone.error().message;
  }
  const auto second = listen_on(address);
  ASSERT_TRUE(second) << second.error().message;
  const auto third = listen_on(address);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(third.error().message, "listen unix:" + address.path + ": address already in use");
  address.path = directory.write("file", "precious").string();
  EXPECT_FALSE(listen_on(address));
  address.path = std::string(200, 'x');
  EXPECT_FALSE(listen_on(address));
}

TEST(ListenOn, SaysWhatIsWrongWithAnAddress) {
  ListenAddress address;
  address.host = "192.0.2.1";  // reserved for documentation (RFC 5737)
  const auto foreign = listen_on(address);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().message, "listen 192.0.2.1:0: Cannot assign requested address");
  address.host = "no such host";
  const auto unknown = listen_on(address);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kInvalidArgument);
}

TEST(PortHolder, FindsListenersInTheKernelsTable) {
  constexpr std::string_view kTable =
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
      "inode\n"
      "   0: 0100007F:2332 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4711 1 0000000000000000 100 0 0 10 0\n"
      "   1: 0100007F:2332 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 "
      "4712 1 0000000000000000 20 4 30 10 -1\n"
      "   2: 00000000:2333 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
      "4713 1 0000000000000000 100 0 0 10 0\n"
      "   3: 00000000000000000000000000000000:2332 00000000000000000000000000000000:0000 0A "
      "00000000:00000000 00:00000000 00000000     0        0 4714 1 0 100 0 0 10 0\n"
      "cut 0100007F:2332 0";
  EXPECT_EQ(listening_inodes(kTable, 0x2332), (std::vector<std::uint64_t>{4711, 4714}));
  EXPECT_EQ(listening_inodes(kTable, 1), std::vector<std::uint64_t>());
  EXPECT_EQ(listening_inodes("", 1), std::vector<std::uint64_t>());
}

TEST(PortHolder, NamesTheProcess) {
  const ceems::testing::TempDir proc;
  proc.write("net/tcp", "head\n 0: 0100007F:0050 00000000:0000 0A 0:0 0:0 0 0 0 4711 1\n");
  proc.write("77/comm", "evil\x1b[0m\n");
  std::filesystem::create_directories(proc.path() / "77/fd");
  std::filesystem::create_symlink("socket:[4711]", proc.path() / "77/fd/3");
  EXPECT_EQ(port_holder(80, proc.path()), "process 77 (evil\\x1b[0m)");
  EXPECT_EQ(port_holder(81, proc.path()), "");
  EXPECT_EQ(port_holder(80, proc.path() / "nowhere"), "");
}

TEST(SystemdListeners, WantTheirVariables) {
  const auto with = [](const std::string& fds, const std::string& pid) {
    return systemd_listeners(
        [&](const std::string& name) { return name == "LISTEN_FDS" ? fds : pid; }, 42);
  };
  for (const auto& [fds, pid] : {std::pair{"", ""}, {"1", "41"}, {"0", "42"}, {"x", "42"}}) {
    const auto none = with(fds, pid);
    ASSERT_FALSE(none);
    EXPECT_EQ(none.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(SystemdListeners, TakeTheSocketsThatWerePassed) {
  // Runs in a child process, where the descriptors from 3 on can be chosen freely.
  const pid_t child = ::fork();
  if (child == 0) {
    auto made =
        listen_on({.kind = ListenAddress::Kind::kTcp, .host = "127.0.0.1", .port = 0, .path = ""});
    const int fd = ::fcntl(made->fd.get(), F_DUPFD, 100);
    ::dup2(fd, 3);
    ::dup2(STDERR_FILENO, 4);
    const auto environment = [](const char* count) {
      return [count](const std::string& name) {
        return std::string(name == "LISTEN_FDS" ? count : "7");
      };
    };
    const auto wrong = systemd_listeners(environment("2"), 7);
    if (wrong || wrong.error().message !=
                     "descriptor 4 passed by systemd is not a listening stream socket") {
      ::_exit(1);
    }
    ::dup2(fd, 3);
    const auto passed = systemd_listeners(environment("1"), 7);
    ::_exit(passed && passed->size() == 1 && passed->front().address == made->address ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace ceems::net
