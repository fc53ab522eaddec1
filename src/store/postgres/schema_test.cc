#include "store/postgres/schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "base/strings.h"
#include "store/schema/tables.h"

namespace ceems::store::postgres {
namespace {

/// Existing databases were created with these statements. If CEEMS_UPDATE_GOLDEN is set in the
/// environment, the golden file is rewritten.
TEST(PgSchema, EveryVersionHasTheStatementsOfTheGoldenFile) {
  std::string texts;
  for (int version = 1; version <= kOwnVersion; ++version) {
    texts += fmt::format("-- version {}\n", version);
    const std::string sql = upgrade_sql(version);
    for (const std::string_view statement : split(sql, ';')) {
      texts += statement.empty() ? "" : fmt::format("{};\n", statement);
    }
  }
  const auto golden = std::filesystem::path(CEEMS_TEST_ROOT) / "golden/store/postgres_schema.sql";
  if (std::getenv("CEEMS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(golden) << texts;
  }
  std::ostringstream wanted;
  wanted << std::ifstream(golden).rdbuf();
  EXPECT_EQ(texts, wanted.str());
}

}  // namespace
}  // namespace ceems::store::postgres
