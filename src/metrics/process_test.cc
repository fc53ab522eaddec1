#include "metrics/process.h"

#include <fcntl.h>

#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fd.h"

namespace ceems::metrics {
namespace {

TEST(ProcessMetrics, DescribeThisProcess) {
  ProcessMetrics metrics("the test");
  Sink sink;
  metrics.add(sink);
  std::string page;
  sink.render(Exposition::kText, page);
  for (const char* line :
       {"# HELP process_resident_memory_bytes Resident memory of the test.\n",
        "\nprocess_cpu_seconds_total ", "\nprocess_open_fds ", "\nprocess_max_fds ",
        "\nprocess_virtual_memory_bytes ", "\nprocess_virtual_memory_max_bytes ",
        "\nprocess_resident_memory_bytes ", "\nprocess_start_time_seconds ",
        "\nprocess_network_receive_bytes_total ", "\nprocess_network_transmit_bytes_total "}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
}

TEST(ProcessMetrics, CountOpenFiles) {
  ProcessMetrics metrics("the test");
  const auto open_files = [&metrics] {
    Sink sink;
    metrics.add(sink);
    std::string page;
    sink.render(Exposition::kText, page);
    constexpr std::string_view kName = "\nprocess_open_fds ";
    const auto at = page.find(kName);
    return at == std::string::npos ? -1 : std::stoi(page.substr(at + kName.size()));
  };
  const int before = open_files();
  const auto listed =
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}) - 1;  // its own
  EXPECT_EQ(before, listed);
  std::vector<UniqueFd> more;
  for (int i = 0; i < 5; ++i) {
    more.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  EXPECT_EQ(open_files(), before + 5);
}

TEST(ParseNetstat, FindsOctetsByName) {
  const auto octets = parse_netstat(
      "TcpExt: SyncookiesSent InOctets\nTcpExt: 0 9\n"
      "IpExt: InNoRoutes InOctets OutOctets\nIpExt: 1 6286396970 2786264347\n");
  EXPECT_EQ(octets.received, 6286396970U);
  EXPECT_EQ(octets.sent, 2786264347U);
  EXPECT_EQ(parse_netstat("").received, 0U);
  EXPECT_EQ(parse_netstat("IpExt: InOctets").received, 0U);
  EXPECT_EQ(parse_netstat("IpExt: InOctets\nIpExt: x\n").received, 0U);
}

}  // namespace
}  // namespace ceems::metrics
