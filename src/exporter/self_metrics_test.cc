#include "exporter/self_metrics.h"

#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

std::string page_of(SelfMetrics& self) {
  metrics::Sink sink;
  self.add(sink);
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  return page;
}

TEST(SelfMetrics, CountsRequestsByStatus) {
  SelfMetrics self(true);
  for (const int status : {200, 200, 503, 500, 404}) {
    self.request_started();
    self.request_finished(status);
  }
  self.request_started();
  self.count_gathering_errors(3);
  const std::string page = page_of(self);
  for (const char* line :
       {"\npromhttp_metric_handler_requests_total{code=\"200\"} 2\n",
        "\npromhttp_metric_handler_requests_total{code=\"500\"} 2\n",
        "\npromhttp_metric_handler_requests_total{code=\"503\"} 1\n",
        "\npromhttp_metric_handler_requests_in_flight 1\n",
        "\npromhttp_metric_handler_errors_total{cause=\"gathering\"} 3\n",
        "\npromhttp_metric_handler_errors_total{cause=\"encoding\"} 0\n",
        "\nprocess_cpu_seconds_total ", "\nprocess_open_fds ", "\nprocess_max_fds ",
        "\nprocess_virtual_memory_bytes ", "\nprocess_virtual_memory_max_bytes ",
        "\nprocess_resident_memory_bytes ", "\nprocess_start_time_seconds ",
        "\nprocess_network_receive_bytes_total ", "\nprocess_network_transmit_bytes_total "}) {
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  }
}

TEST(SelfMetrics, LeavesOnlyTheBuildInformationWhenDisabled) {
  SelfMetrics self(false);
  const std::string page = page_of(self);
  EXPECT_NE(page.find("ceems_exporter_build_info{branch="), std::string::npos);
  EXPECT_EQ(page.find("process_"), std::string::npos);
  EXPECT_EQ(page.find("promhttp_"), std::string::npos);
}

}  // namespace
}  // namespace ceems::exporter
