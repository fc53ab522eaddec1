// Energy of nodes and bills, on every database.
#include <cstddef>
#include <cstdint>
#include <thread>

#include <gtest/gtest.h>

#include "store/nodes.h"
#include "store/reports.h"
#include "store/test_database.h"
#include "testing/eventually.h"

namespace ceems::store {
namespace {

class NodeDays : public EveryDatabase {
 protected:
  static NodeUpdate hour_of(std::int64_t start, std::vector<NodeEnergy> energies) {
    return {.cluster_id = "hpc",
            .start_ms = start,
            .end_ms = start + kHour,
            .day_ms = kNow,
            .energies = std::move(energies),
            .facts = {}};
  }
  [[nodiscard]] DatabaseOptions where() const {
    return {.directory = dir_.path().string(), .url = url_};
  }
};

INSTANTIATE_TEST_SUITE_P(All,
                         NodeDays,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

// Nodes are written by the update, reports by a thread of their own.
TEST_P(NodeDays, AreWrittenWhileReportsAre) {
  constexpr int kTimes = 50;
  auto& writer = db_->writer();
  ASSERT_TRUE(writer.lead().value());
  int reports = 0;
  std::jthread finisher([&writer, &reports] {
    for (int i = 0; i < kTimes; ++i) {
      reports += writer.postpone_reports({{.cluster_id = "hpc", .uuid = "1"}}, kNow) ? 1 : 0;
    }
  });
  int nodes = 0;
  for (int i = 0; i < kTimes; ++i) {
    const std::int64_t start = kNow + i * kHour;
    const auto until = writer.nodes_until("hpc");
    const bool follows = until && until->value_or(start) == start;
    nodes += follows && writer.write_nodes(hour_of(start, {{.node = "n1", .energy = 1}})) ? 1 : 0;
  }
  finisher.join();
  EXPECT_EQ(nodes, kTimes);
  EXPECT_EQ(reports, kTimes);
}

TEST_P(NodeDays, AreAddedUpOnce) {
  auto& writer = db_->writer();
  ASSERT_TRUE(writer.lead().value());
  EXPECT_FALSE(writer.nodes_until("hpc").value());
  NodeUpdate first =
      hour_of(kNow, {{.node = "n1",
                      .energy = 100,
                      .idle = 20,
                      .system = 5,
                      .unallocated = 10,
                      .modelled = 0,
                      .covered_ms = kHour},
                     {.node = "n2", .energy = 50, .modelled = 50, .covered_ms = kHour / 2}});
  first.facts = {{.node = "n1", .node_class = "big", .source = "redfish", .cpus = 64},
                 {.node = "n2", .node_class = "big"}};
  ASSERT_TRUE(writer.write_nodes(first));
  const auto again = writer.write_nodes(first);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(writer.nodes_until("hpc").value(), kNow + kHour);
  NodeUpdate second =
      hour_of(kNow + kHour, {{.node = "n1", .energy = 1, .idle = 1, .covered_ms = 7},
                             {.node = std::string("\0", 1), .energy = 5}});
  second.facts = {{.node = "n1", .memory = 7}};
  ASSERT_TRUE(writer.write_nodes(second));
  const auto days = db_->reader().node_days({"hpc"}, {kNow, kNow});
  ASSERT_TRUE(days) << days.error().message;
  ASSERT_EQ(days->size(), 1U);
  const NodeDay& day = days->front();
  EXPECT_EQ(day.node_class, "big");
  EXPECT_EQ(day.day_ms, kNow);
  EXPECT_EQ(day.nodes, 2);
  EXPECT_EQ(day.sum.energy, 151);
  EXPECT_EQ(day.sum.idle, 21);
  EXPECT_EQ(day.sum.system, 5);
  EXPECT_EQ(day.sum.unallocated, 10);
  EXPECT_EQ(day.sum.modelled, 50);
  EXPECT_EQ(day.sum.covered_ms, kHour + kHour / 2 + 7);
  EXPECT_TRUE(db_->reader().node_days({"other"}, {kNow, kNow})->empty());
  EXPECT_TRUE(db_->reader().node_days({}, {kNow + 1, kNow + kDay})->empty());
  const auto nodes = db_->reader().known_nodes({});
  ASSERT_TRUE(nodes) << nodes.error().message;
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ(nodes->front().facts.node, "n1");
  EXPECT_EQ(nodes->front().facts.source, "redfish");
  EXPECT_EQ(nodes->front().facts.cpus, 64);
  EXPECT_EQ(nodes->front().facts.memory, 7);
  EXPECT_EQ(nodes->front().first_ms, kNow);
  EXPECT_EQ(nodes->front().last_ms, kNow + 2 * kHour);
  EXPECT_EQ(nodes->back().last_ms, kNow + kHour);
}

TEST_P(NodeDays, BillsDoNotOverlap) {
  const Bill december{.cluster_id = "",
                      .start_ms = kNow - 31 * kDay,
                      .end_ms = kNow,
                      .energy = 118,
                      .cost = "-1.5",
                      .currency = "EUR",
                      .kgco2 = "7"};
  const Bill january{.cluster_id = "", .start_ms = kNow, .end_ms = kNow + 31 * kDay, .energy = 1};
  const auto added = import_bills(where(), {january, december}, false);
  ASSERT_TRUE(added) << added.error().message;
  EXPECT_EQ(added->added, 2U);
  EXPECT_EQ(db_->reader().bills({kNow - kDay, kNow}).value(), std::vector<Bill>{december});
  EXPECT_EQ(db_->reader().bills({kNow - kDay, kNow + 1})->size(), 2U);
  // The same again changes nothing.
  EXPECT_EQ(import_bills(where(), {december}, false)->unchanged, 1U);
  Bill other = december;
  other.start_ms += kDay;
  other.end_ms += kDay;
  auto refused = import_bills(where(), {other}, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  // Another cluster has bills of its own, and none of a list is added if one is refused.
  Bill of_cluster = other;
  of_cluster.cluster_id = "hpc";
  EXPECT_FALSE(import_bills(where(), {of_cluster, other}, false));
  EXPECT_EQ(db_->reader().bills({0, kNow + 99 * kDay})->size(), 2U);
  EXPECT_TRUE(import_bills(where(), {of_cluster}, false));
  EXPECT_FALSE(import_bills(where(), {december, other}, true));  // they overlap each other
  const auto replaced = import_bills(where(), {other}, true);
  ASSERT_TRUE(replaced);
  EXPECT_EQ(replaced->replaced, 2U);
  EXPECT_EQ(db_->reader().bills({0, kNow + 99 * kDay}).value(),
            (std::vector<Bill>{other, of_cluster}));
}

TEST_P(NodeDays, AnImportIsNoticedByTheServer) {
  ASSERT_TRUE(db_->writer().lead().value());
  Reader& reader = db_->reader();
  const Bill bill{.start_ms = kNow, .end_ms = kNow + kDay, .energy = 3};
  for (const std::size_t added : {std::size_t{1}, std::size_t{0}}) {
    const std::uint64_t before = reader.generation();
    EXPECT_EQ(reader.generation(), before);
    const auto imported = import_bills(where(), {bill}, false);
    ASSERT_TRUE(imported) << imported.error().message;
    EXPECT_EQ(imported->added, added);
    if (added > 0) {
      EXPECT_TRUE(testing::eventually([&] { return reader.generation() > before; }));
    } else if (backend_ == Backend::kSqlite) {
      EXPECT_EQ(reader.generation(), before);
    }
  }
  // Commits of the server itself count once.
  if (backend_ == Backend::kSqlite) {
    const std::uint64_t before = reader.generation();
    ASSERT_TRUE(db_->writer().write_nodes(hour_of(kNow, {{.node = "n1", .energy = 1}})));
    EXPECT_EQ(reader.generation(), before + 1);
    EXPECT_EQ(reader.generation(), before + 1);
  }
}

TEST_P(NodeDays, BillsNeedADatabaseOfThisVersion) {
  execute("UPDATE ceems_schema SET version = 11");
  const auto refused = import_bills(where(), {{.start_ms = 1, .end_ms = 2, .energy = 3}}, false);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("start ceems_api_server"), std::string::npos);
}

}  // namespace
}  // namespace ceems::store
