#include "exporter/options.h"

#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

TEST(ExporterOptions, AreValidByDefault) {
  EXPECT_TRUE(check(Options{}));
}

TEST(ExporterOptions, RefuseAnEmptyPath) {
  Options options;
  options.telemetry_path = "";
  auto checked = check(options);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(checked.error().message,
            "--web.telemetry-path must not be empty; leave the flag out for /metrics");
  options = {};
  options.targets_path = "";
  checked = check(options);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "--web.targets-path must not be empty; leave the flag out for /alloy-targets");
}

TEST(ExporterOptions, RefuseANegativeNumberOfScrapes) {
  Options options;
  options.max_requests = 0;
  EXPECT_TRUE(check(options));
  options.max_requests = -1;
  const auto checked = check(options);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "--web.max-requests must not be negative; 0 means no limit, got -1");
}

TEST(ExporterOptions, LeaveMostFilesToOthersThanConnectionsAndReadNoBodies) {
  const auto server = server_options({});
  EXPECT_EQ(net::connections_allowed(server.max_connections, 1024, server.file_share), 256U);
  EXPECT_FALSE(server.needs_body({}));
}

TEST(ExporterOptions, RunAtLeastOneThreadForScrapesAndOneForOtherRequests) {
  Options options;
  for (const auto& [procs, threads] : {std::pair(-1L, 2), std::pair(0L, 2), std::pair(1L, 2),
                                       std::pair(3L, 4), std::pair(1000L, 17)}) {
    options.max_procs = procs;
    EXPECT_EQ(server_options(options).threads, threads) << procs;
  }
}

}  // namespace
}  // namespace ceems::exporter
