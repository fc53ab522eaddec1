#include "exporter/collectors/ebpf.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/collectors/collector_test_support.h"
#include "exporter/ebpf/fake_tables.h"
#include "testing/temp_dir.h"

// Only some of the many counters are set.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace ceems::exporter {
namespace {

using ebpf::FakeTables;
using ::testing::HasSubstr;
using ::testing::Not;

struct EbpfTest : ::testing::Test {
  testing::TempDir root;
  TestContext test{root.path()};
  FakeTables::State state;

  EbpfTest() {
    test.clock.advance(std::chrono::hours(1));
    state.mounts = {{7, "scratch"}, {8, "home"}};
    state.readings.files = {
        {{.cgroup = 100, .mount = 7, .root = 1},
         {.read_bytes = 10,
          .reads = 2,
          .read_errors = 1,
          .write_bytes = 300,
          .writes = 3,
          .write_errors = 0}},
        {{.cgroup = 100, .mount = 8, .root = 1}, {.read_bytes = 5, .reads = 1}}};
    state.readings.names = {{100,
                             {.opens = 7,
                              .open_errors = 1,
                              .creates = 4,
                              .create_errors = 2,
                              .unlinks = 3,
                              .unlink_errors = 1}}};
    state.readings.traffic = {
        {{.cgroup = 100, .protocol = 6, .family = 2, .network_class = 1},
         {.ingress_packets = 4,
          .ingress_bytes = 40,
          .egress_packets = 5,
          .egress_bytes = 50,
          .retrans_packets = 1,
          .retrans_bytes = 9}},
        {{.cgroup = 100, .protocol = 6, .family = 2, .network_class = 0}, {.ingress_bytes = 2}},
        {{.cgroup = 100, .protocol = 17, .family = 10, .network_class = 0},
         {.ingress_bytes = 1, .egress_errors = 3}}};
    ebpf::ebpf_latency_value latency{.nanoseconds = 2'500'000'000};
    latency.buckets[0] = 3;
    latency.buckets[11] = 1;
    state.readings.latencies = {
        {{.mount = 7, .root = 1, .operation = ebpf::EBPF_FSYNC, .unused = 0}, latency}};
    state.readings.lost.traffic = 6;
    state.readings.skipped = 8;
  }

  std::string page(EbpfOptions options) {
    auto counts =
        std::make_shared<ebpf::Counts>(std::make_unique<FakeTables>(state), false, test.clock);
    const auto collector = make_ebpf(test.context, std::move(options), std::move(counts));
    Unit unit;
    unit.uuid = "42";
    unit.cgroup_id = 100;
    metrics::Sink sink;
    const auto done = collector->collect({.manager = "slurm", .units = {unit}}, sink);
    EXPECT_TRUE(done) << done.error().message;
    std::string text;
    sink.render(metrics::Exposition::kText, text);
    return text;
  }
};

TEST_F(EbpfTest, ShowsFilesByMount) {
  const std::string text = page({.files = true});
  for (const char* line :
       {"ceems_ebpf_write_bytes_total{hostname=\"n1\",manager=\"slurm\",mountpoint=\"/scratch\","
        "uuid=\"42\"} 300\n",
        "ceems_ebpf_write_requests_total{hostname=\"n1\",manager=\"slurm\",mountpoint=\"/scratch\","
        "uuid=\"42\"} 3\n",
        "ceems_ebpf_read_errors_total{hostname=\"n1\",manager=\"slurm\",mountpoint=\"/scratch\","
        "uuid=\"42\"} 1\n",
        "ceems_ebpf_read_bytes_total{hostname=\"n1\",manager=\"slurm\",mountpoint=\"/home\","
        "uuid=\"42\"} 5\n",
        "# HELP ceems_ebpf_write_bytes_total Total number of bytes written from a cgroup in "
        "bytes\n",
        "# HELP ceems_ebpf_read_errors_total Total number of read errors from a cgroup\n",
        "# HELP ceems_ebpf_open_create_total Total number of create errors from a cgroup\n",
        "ceems_ebpf_open_requests_total{hostname=\"n1\",manager=\"slurm\",uuid=\"42\"} 7\n",
        "ceems_ebpf_create_requests_total{hostname=\"n1\",manager=\"slurm\",uuid=\"42\"} 4\n",
        "ceems_ebpf_open_create_total{hostname=\"n1\",manager=\"slurm\",uuid=\"42\"} 2\n",
        "ceems_ebpf_create_errors_total{hostname=\"n1\",manager=\"slurm\",uuid=\"42\"} 2\n",
        "ceems_ebpf_unlink_errors_total{hostname=\"n1\",manager=\"slurm\",uuid=\"42\"} 1\n",
        "ceems_ebpf_lost_events_total{hostname=\"n1\",manager=\"slurm\",table=\"traffic\"} 6\n",
        "ceems_ebpf_lost_events_total{hostname=\"n1\",manager=\"slurm\",table=\"files\"} 0\n",
        "ceems_ebpf_skipped_events_total{hostname=\"n1\",manager=\"slurm\"} 8\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("ingress")));
  EXPECT_THAT(text, Not(HasSubstr("ceems_ebpf_read_seconds_total")));
}

TEST_F(EbpfTest, ShowsOnlyWantedMounts) {
  const std::string text = page({.files = true, .mount_points = {"cra", "/opt"}});
  EXPECT_THAT(text, HasSubstr("mountpoint=\"/scratch\""));
  EXPECT_THAT(text, Not(HasSubstr("mountpoint=\"/home\"")));
  EXPECT_THAT(text, HasSubstr("ceems_ebpf_open_requests_total{"));
}

TEST_F(EbpfTest, ShowsTrafficByProtocolAndFamily) {
  const std::string text = page({.network = true});
  const std::string tcp =
      "{family=\"ipv4\",hostname=\"n1\",manager=\"slurm\",proto=\"tcp\",uuid=\"42\"} ";
  const std::string udp =
      "{family=\"ipv6\",hostname=\"n1\",manager=\"slurm\",proto=\"udp\",uuid=\"42\"} ";
  for (const std::string& line : {"ceems_ebpf_ingress_bytes_total" + tcp + "42\n",
                                  "ceems_ebpf_ingress_packets_total" + tcp + "4\n",
                                  "ceems_ebpf_egress_bytes_total" + tcp + "50\n",
                                  "ceems_ebpf_retrans_packets_total" + tcp + "1\n",
                                  "ceems_ebpf_retrans_bytes_total" + tcp + "9\n",
                                  "ceems_ebpf_ingress_bytes_total" + udp + "1\n",
                                  "ceems_ebpf_egress_errors_total" + udp + "3\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("ceems_ebpf_retrans_bytes_total" + udp)));
  EXPECT_THAT(text, Not(HasSubstr("ceems_ebpf_egress_errors_total" + tcp)));
  EXPECT_THAT(text, Not(HasSubstr("class")));
}

TEST_F(EbpfTest, ShowsTrafficByClass) {
  auto classes = ebpf::NetworkClasses::parse({"storage=10.1.0.0/16"});
  ASSERT_TRUE(classes);
  const std::string text = page({.network = true, .classes = *std::move(classes)});
  EXPECT_THAT(text,
              HasSubstr("ceems_ebpf_class_egress_bytes_total{class=\"storage\",hostname=\"n1\","
                        "manager=\"slurm\",uuid=\"42\"} 50\n"));
  EXPECT_THAT(text,
              HasSubstr("ceems_ebpf_class_ingress_bytes_total{class=\"outside\",hostname=\"n1\","
                        "manager=\"slurm\",uuid=\"42\"} 3\n"));
}

TEST_F(EbpfTest, ShowsLatenciesOfMounts) {
  const std::string text = page({.files = true, .latency = true});
  const std::string labels = "{fstype=\"tmpfs\",hostname=\"n1\",";
  const std::string rest = "manager=\"slurm\",mountpoint=\"/scratch\",operation=\"fsync\"} ";
  for (const std::string& line :
       {"ceems_ebpf_latency_seconds_bucket" + labels + "le=\"4.096e-06\"," + rest + "3\n",
        "ceems_ebpf_latency_seconds_bucket" + labels + "le=\"4.294967296\"," + rest + "3\n",
        "ceems_ebpf_latency_seconds_bucket" + labels + "le=\"+Inf\"," + rest + "4\n",
        "ceems_ebpf_latency_seconds_sum" + labels + rest + "2.5\n",
        "ceems_ebpf_latency_seconds_count" + labels + rest + "4\n",
        std::string("ceems_ebpf_fsync_seconds_total{")}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(EbpfTest, FailsIfTheTablesCannotBeRead) {
  state.failure = Error{ErrorCode::kPermissionDenied, "no capability"};
  const auto collector = make_ebpf(
      test.context, {.files = true},
      std::make_shared<ebpf::Counts>(std::make_unique<FakeTables>(state), false, test.clock));
  metrics::Sink sink;
  const auto done = collector->collect({.manager = "slurm"}, sink);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "no capability");
  EXPECT_THAT(collector->capabilities(), Not(::testing::IsEmpty()));
}

}  // namespace
}  // namespace ceems::exporter
