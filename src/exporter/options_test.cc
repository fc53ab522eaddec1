#include "exporter/options.h"

#include <array>

#include <gtest/gtest.h>

namespace ceems::exporter {
namespace {

TEST(ExporterOptions, AreValidByDefault) {
  EXPECT_TRUE(check(Options{}));
}

TEST(ExporterOptions, ChooseTheNamesOfPowerMetrics) {
  for (const auto& [text, names] :
       {std::pair("both", PowerNames::kBoth), std::pair("v0.10", PowerNames::kOld),
        std::pair("v0.11", PowerNames::kNew)}) {
    Options options;
    config::FlagSet flags("test", "");
    add_first_flags(flags, options);
    const std::string flag = std::string("--collector.power-metric-names=") + text;
    const std::array words{"test", flag.c_str()};
    EXPECT_FALSE(flags.parse(static_cast<int>(words.size()), words.data()).exit);
    EXPECT_EQ(options.power_names(), names) << text;
  }
  EXPECT_EQ(Options{}.power_names(), PowerNames::kBoth);
  Options options;
  config::FlagSet flags("test", "");
  add_first_flags(flags, options);
  const std::array words{"test", "--collector.power-metric-names=v0.12"};
  EXPECT_EQ(flags.parse(static_cast<int>(words.size()), words.data()).text,
            "test: error: enum value of '--collector.power-metric-names' must be one of "
            "both,v0.10,v0.11, got 'v0.12', try --help\n");
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
