#include "exporter/collectors/node_info.h"

#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {
namespace {

std::string node_info_page(const NodeInfo& node, std::string_view gpu) {
  metrics::Sink sink;
  node.add(gpu, sink);
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  return page.substr(page.rfind("\nceems_") + 1);
}

TEST(NodeInfo, NamesTheCpusAndGpusOfAMachine) {
  const auto root = fixture("intel-2s");
  const NodeInfo node("n1", {root / "proc", root / "sys", root / "sys/fs/cgroup"});
  EXPECT_EQ(node_info_page(node, "NVIDIA H100 80GB HBM3"),
            "ceems_node_info{cpu_model=\"Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz\","
            "gpu_model=\"NVIDIA H100 80GB HBM3\",hostname=\"n1\",sockets=\"2\"} 1\n");
}

TEST(NodeInfo, LeavesEmptyWhatIsNotKnown) {
  const testing::TempDir root;
  const NodeInfo node("n1", {root.path() / "proc", root.path() / "sys", root.path() / "cgroup"});
  EXPECT_EQ(node_info_page(node, ""),
            "ceems_node_info{cpu_model=\"\",gpu_model=\"\",hostname=\"n1\",sockets=\"\"} 1\n");
}

}  // namespace
}  // namespace ceems::exporter
