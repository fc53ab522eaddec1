#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/collector.h"
#include "exporter/flag_names.h"
#include "testing/eventually.h"
#include "testing/fake_clock.h"

namespace ceems::exporter {

/// A context whose roots are `<root>/proc` and so on, with the hostname "n1". For tests.
struct TestContext {
  testing::FakeClock clock;
  CollectorContext context;

  explicit TestContext(const std::filesystem::path& root) {
    context.paths = {root / "proc", root / "sys", root / "sys/fs/cgroup"};
    context.hostname = "n1";
    context.clock = &clock;
  }
};

/// Creates the collector as the program does with these flags, which may be its own or shared ones.
inline Result<std::unique_ptr<Collector>> create_collector(
    const CollectorSpec& spec,
    const CollectorContext& context,
    const std::vector<std::string>& arguments = {},
    const Sources& sources = {}) {
  config::FlagSet flags("test", "");
  if (spec.add_flags) {
    spec.add_flags(flags);
  }
  add_flag_aliases(flags);
  std::vector<const char*> line{"test"};
  for (const std::string& argument : arguments) {
    line.push_back(argument.c_str());
  }
  const auto outcome = flags.parse(static_cast<int>(line.size()), line.data());
  EXPECT_FALSE(outcome.exit) << outcome.text;
  return spec.create(context, sources);
}

/// Root of one of the machines in tests/fixtures.
inline std::filesystem::path fixture(const std::string& host) {
  return std::filesystem::path(CEEMS_TEST_ROOT) / "fixtures" / host;
}

/// Starts the collector as the program does.
template <class AnyCollector>
void start_and_wait(AnyCollector& collector) {
  collector.start();
  collector.wait_first(std::chrono::steady_clock::now() + testing::kPatience);
}

/// The samples that the collector adds, without HELP and TYPE lines.
inline std::string samples_of(Collector& collector, Result<>* result = nullptr) {
  metrics::Sink sink;
  const auto done = collector.collect(sink);
  if (result != nullptr) {
    *result = done;
  }
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  std::string samples;
  for (std::size_t at = 0; at < page.size();) {
    const std::size_t end = page.find('\n', at) + 1;
    if (page[at] != '#') {
      samples.append(page, at, end - at);
    }
    at = end;
  }
  return samples;
}

}  // namespace ceems::exporter
