// The flavors of clouds, on every database.
#include <gtest/gtest.h>

#include "store/test_database.h"

namespace ceems::store {
namespace {

class Flavors : public EveryDatabase {
 protected:
  /// Writes a window of the cluster with these flavors.
  void write_flavors(std::optional<std::vector<model::Flavor>> flavors,
                     const std::string& cluster = "cloud") {
    const std::int64_t start = kNow + windows_++ * kMinute;
    ClusterUpdate window =
        update(ends_[cluster] > 0 ? ends_[cluster] : start, start + kMinute, {}, cluster);
    ends_[cluster] = start + kMinute;
    window.flavors = std::move(flavors);
    const auto written = db_->writer().write(window);
    ASSERT_TRUE(written) << written.error().message;
  }
  std::vector<model::Flavor> stored(const std::string& cluster = "cloud") {
    const auto flavors = db_->reader().flavors(cluster);
    EXPECT_TRUE(flavors) << flavors.error().message;
    return flavors.value_or(std::vector<model::Flavor>{});
  }

 private:
  std::int64_t windows_ = 0;
  std::map<std::string, std::int64_t> ends_;
};

INSTANTIATE_TEST_SUITE_P(All,
                         Flavors,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

TEST_P(Flavors, AreReplacedByTheNextList) {
  ASSERT_TRUE(db_->writer().lead().value());
  EXPECT_TRUE(stored().empty());
  const model::Flavor small{.region = "north",
                            .id = "1",
                            .name = "m1.small'; DROP TABLE ceems_flavors;--",
                            .vcpus = 1,
                            .ram_mib = 2048,
                            .disk_gb = 20,
                            .ephemeral_gb = 3,
                            .swap_mb = 512,
                            .extra_specs = R"({"hw:cpu_policy":"dedicated"})",
                            .offered = true};
  model::Flavor large{
      .region = "north", .id = "2", .name = "m1.large", .vcpus = 4, .ram_mib = 8192};
  const model::Flavor south{.region = "south", .id = "1", .name = "s", .vcpus = 2, .ram_mib = 1};
  write_flavors(std::vector{south, large, small});
  EXPECT_EQ(stored(), (std::vector{small, large, south}));
  EXPECT_TRUE(stored("other").empty());
  // A window that does not know them changes nothing.
  write_flavors(std::nullopt);
  EXPECT_EQ(stored(), (std::vector{small, large, south}));
  large.vcpus = 8;
  write_flavors(std::vector{small, large});
  EXPECT_EQ(stored(), (std::vector{small, large}));
  write_flavors(std::vector{south}, "other");
  EXPECT_EQ(stored("other"), (std::vector{south}));
  EXPECT_EQ(stored(), (std::vector{small, large}));
  write_flavors(std::vector<model::Flavor>{});
  EXPECT_TRUE(stored().empty());
}

TEST_P(Flavors, ThatNoDatabaseCanStoreAreLeftOut) {
  ASSERT_TRUE(db_->writer().lead().value());
  const std::string with_nul("a\0b", 3);
  const model::Flavor good{.id = "1", .name = "m1.small", .vcpus = 1, .ram_mib = 512};
  model::Flavor again = good;
  again.name = "the same id";
  write_flavors(std::vector<model::Flavor>{{.id = with_nul, .name = "x"},
                                           {.id = "2", .name = with_nul},
                                           {.id = std::string(513, 'x'), .name = "x"},
                                           {.id = "", .name = "x"},
                                           {.region = with_nul, .id = "3", .name = "x"},
                                           good,
                                           again});
  EXPECT_EQ(stored(), (std::vector{good}));
}

}  // namespace
}  // namespace ceems::store
