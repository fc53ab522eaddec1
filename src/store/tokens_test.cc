#include "store/tokens.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TokensTest : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    if (IsSkipped()) {
      return;
    }
    auto opened = db_->open_tokens();
    ASSERT_TRUE(opened) << opened.error().message;
    tokens_ = std::move(*opened);
  }
  void TearDown() override { tokens_.reset(); }

  static Token token(const std::string& id, const std::string& user, std::int64_t created = kNow) {
    return {.id = id,
            .hash = "hash of " + id,
            .username = user,
            .name = "my " + id,
            .scope = "read-own",
            .created_ms = created,
            .expires_ms = kNow + kDay};
  }
  Texts ids_of(const std::optional<std::string>& user) {
    Texts ids;
    const auto found = db_->reader().tokens_of(user);
    EXPECT_TRUE(found);
    for (const Token& one : *found) {
      ids.push_back(one.id);
    }
    return ids;
  }

  /// Whose token was deleted, or that there was none.
  std::string removed(const std::string& id, const std::optional<std::string>& user) {
    const auto owner = tokens_->remove(id, user);
    return owner ? owner->value_or("none") : owner.error().message;
  }

  std::unique_ptr<TokenWriter> tokens_;
};

TEST_P(TokensTest, AreFoundByTheirHash) {
  EXPECT_EQ(tokens_->add(token("1", "ada"), 9), true);
  const auto found = db_->reader().find_token("hash of 1");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, "1");
  EXPECT_EQ((*found)->hash, "hash of 1");
  EXPECT_EQ((*found)->username, "ada");
  EXPECT_EQ((*found)->name, "my 1");
  EXPECT_EQ((*found)->scope, "read-own");
  EXPECT_EQ((*found)->created_ms, kNow);
  EXPECT_EQ((*found)->expires_ms, kNow + kDay);
  EXPECT_EQ((*found)->used_ms, 0);
  for (const std::string hash : {"", "hash of 2", "hash of 1 ", "' OR 1=1 --"}) {
    const auto other = db_->reader().find_token(hash);
    ASSERT_TRUE(other);
    EXPECT_FALSE(other->has_value()) << hash;
  }
}

TEST_P(TokensTest, AreListedByOwner) {
  for (const Token& one : {token("3", "ada", kNow + 1), token("2", "bob"), token("4", "ada")}) {
    EXPECT_EQ(tokens_->add(one, 9), true);
  }
  EXPECT_THAT(ids_of("ada"), ElementsAre("4", "3"));
  EXPECT_THAT(ids_of("bob"), ElementsAre("2"));
  EXPECT_THAT(ids_of(""), IsEmpty());
  EXPECT_THAT(ids_of(std::nullopt), ElementsAre("4", "3", "2"));
}

TEST_P(TokensTest, AreLimitedForEachOwner) {
  EXPECT_EQ(tokens_->add(token("1", "ada"), 2), true);
  EXPECT_EQ(tokens_->add(token("2", "ada"), 2), true);
  EXPECT_EQ(tokens_->add(token("3", "ada"), 2), false);
  EXPECT_EQ(tokens_->add(token("4", "bob"), 2), true);
  EXPECT_FALSE(tokens_->add(token("4", "eve"), 2));  // an id is never given twice
}

TEST_P(TokensTest, AreDeletedByTheirOwnerOrForEverybody) {
  EXPECT_EQ(tokens_->add(token("1", "ada"), 9), true);
  EXPECT_EQ(tokens_->add(token("2", "ada"), 9), true);
  EXPECT_EQ(removed("1", "bob"), "none");
  EXPECT_EQ(removed("1", ""), "none");
  EXPECT_THAT(ids_of("ada"), ElementsAre("1", "2"));
  EXPECT_EQ(removed("1", "ada"), "ada");
  EXPECT_EQ(removed("1", "ada"), "none");
  EXPECT_EQ(removed("2", std::nullopt), "ada");
  EXPECT_THAT(ids_of("ada"), IsEmpty());
}

TEST_P(TokensTest, ExpireAndAreUsed) {
  EXPECT_EQ(tokens_->add(token("1", "ada"), 9), true);
  EXPECT_TRUE(tokens_->note_use("1", kNow + 5));
  EXPECT_TRUE(tokens_->note_use("1", kNow + 4));  // an earlier one that comes late
  EXPECT_TRUE(tokens_->note_use("2", kNow + 4));
  EXPECT_EQ(db_->reader().tokens_of("ada")->front().used_ms, kNow + 5);
  EXPECT_TRUE(tokens_->remove_expired("ada", kNow + kDay));
  EXPECT_THAT(ids_of("ada"), ElementsAre("1"));
  EXPECT_TRUE(tokens_->remove_expired("bob", kNow + kDay + 1));
  EXPECT_THAT(ids_of("ada"), ElementsAre("1"));
  EXPECT_TRUE(tokens_->remove_expired("ada", kNow + kDay + 1));
  EXPECT_THAT(ids_of("ada"), IsEmpty());
}

TEST_P(TokensTest, HoldHostileTexts) {
  Token hostile = token("1", "ada'; DROP TABLE ceems_tokens;--");
  hostile.name = std::string("\xff\x00\n\"<b>", 7);
  EXPECT_EQ(tokens_->add(hostile, 9), true);
  const auto found = db_->reader().tokens_of(hostile.username);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ(found->front().name, "\uFFFD\uFFFD\n\"<b>");
}

INSTANTIATE_TEST_SUITE_P(,
                         TokensTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
