#include "metrics/process.h"

#include <gtest/gtest.h>

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
