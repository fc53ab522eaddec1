#include "store/sqlite/connection.h"

#include <gmock/gmock.h>

#include "testing/temp_dir.h"

namespace ceems::store::sqlite {
namespace {

using ::testing::ElementsAre;

TEST(Statement, ReportsAParameterThatItDoesNotHave) {
  auto connection = Connection::open(":memory:", OpenMode::kReadWrite).value();
  for (int kind = 0; kind < 3; ++kind) {
    auto statement = connection.prepare("SELECT ?").value();
    if (kind == 0) {
      statement.bind(2, "text");
    } else if (kind == 1) {
      statement.bind(2, 7);
    } else {
      statement.bind_null(2);
    }
    statement.bind(1, 7);  // must not hide the error
    EXPECT_FALSE(statement.step()) << kind;
  }
  auto statement = connection.prepare("SELECT ?, ?").value();
  statement.bind_all({"text", std::int64_t{7}});
  ASSERT_TRUE(statement.step().value());
  EXPECT_EQ(statement.text(0), "text");
  EXPECT_EQ(statement.integer(1), 7);
}

TEST(Connection, ReportsTheProgressOfACopyInTenths) {
  const testing::TempDir dir;
  const std::string path = (dir.path() / "from.db").string();
  auto connection = Connection::open(path, OpenMode::kReadWrite).value();
  constexpr int kBatches = 25;  // of 256 pages
  ASSERT_TRUE(connection.execute("CREATE TABLE t (b BLOB); INSERT INTO t VALUES (zeroblob(" +
                                 std::to_string(kBatches * 256 * 4096) + "))"));
  std::vector<int> progress;
  ASSERT_TRUE(connection.copy_to((dir.path() / "to.db").string(), nullptr, nullptr,
                                 [&](int percent) { progress.push_back(percent); }));
  EXPECT_THAT(progress, ElementsAre(10, 20, 30, 40, 50, 60, 70, 80, 90));
  auto copy = Connection::open((dir.path() / "to.db").string(), OpenMode::kReadOnly).value();
  EXPECT_EQ(copy.query_integer("SELECT length(b) FROM t").value(), kBatches * 256 * 4096);
}

}  // namespace
}  // namespace ceems::store::sqlite
