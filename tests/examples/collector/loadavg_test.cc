#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "testing/temp_dir.h"

namespace ceems::exporter {

CollectorSpec loadavg_collector();  // of a collector of the exporter: its line in collectors/all.h

namespace {

TEST(Loadavg, ExportsTheThreeAverages) {
  const testing::TempDir root;
  root.write("proc/loadavg", "0.20 0.18 12.5 1/80 11206\n");
  const TestContext host(root.path());
  const auto collector = create_collector(loadavg_collector(), host.context).value();
  EXPECT_EQ(samples_of(*collector),
            "ceems_load_average{hostname=\"n1\",minutes=\"1\"} 0.2\n"
            "ceems_load_average{hostname=\"n1\",minutes=\"15\"} 12.5\n"
            "ceems_load_average{hostname=\"n1\",minutes=\"5\"} 0.18\n");
}

TEST(Loadavg, FailsWhileTheFileIsBadAndComesBack) {
  const testing::TempDir root;
  const TestContext host(root.path());
  const auto collector = create_collector(loadavg_collector(), host.context).value();
  Result<> result;
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  root.write("proc/loadavg", "0.20 x\n");
  EXPECT_EQ(samples_of(*collector, &result), "");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            (root.path() / "proc/loadavg").string() + ": expected three numbers, got '0.20 x'");
  root.write("proc/loadavg", "1 2 3 1/1 1\n");
  EXPECT_NE(samples_of(*collector, &result), "");
  EXPECT_TRUE(result);
}

}  // namespace
}  // namespace ceems::exporter
