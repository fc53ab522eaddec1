#include "store/outbox.h"

#include <gmock/gmock.h>

#include "store/test_database.h"

namespace ceems::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutboxTest : public EveryDatabase {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EveryDatabase::SetUp());
    open_outbox();
  }
  void open_outbox() {
    auto outbox = db_->open_outbox();
    ASSERT_TRUE(outbox) << outbox.error().message;
    outbox_ = std::move(*outbox);
  }
  static OutgoingMail mail(const std::string& id, std::int64_t due_ms = kNow) {
    return {.id = id,
            .kind = "job",
            .username = "ada",
            .recipient = "ada@example.org",
            .digest = "",
            .body = "{}",
            .received_ms = kNow,
            .due_ms = due_ms};
  }
  Texts due(std::int64_t now_ms = kNow) {
    Texts ids;
    const auto mails = outbox_->due(now_ms, 100);
    EXPECT_TRUE(mails);
    for (const OutgoingMail& one : *mails) {
      ids.push_back(one.id);
    }
    return ids;
  }
  std::unique_ptr<Outbox> outbox_;
};

TEST_P(OutboxTest, TakesAMailOnce) {
  OutgoingMail hostile = mail("1");
  hostile.body = "\xff\x00';DROP TABLE ceems_outbox;--";
  EXPECT_EQ(outbox_->add({hostile, mail("2", kNow + 1)}), 2U);
  EXPECT_EQ(outbox_->add({mail("1"), mail("3", kNow - 1)}), 1U);
  EXPECT_THAT(due(), ElementsAre("3", "1"));
  EXPECT_EQ(outbox_->queued(), 3);
  const auto mails = outbox_->due(kNow + 1, 2);
  ASSERT_TRUE(mails);
  EXPECT_EQ(mails->size(), 2U);
  EXPECT_EQ(mails->at(1).recipient, "ada@example.org");
}

TEST_P(OutboxTest, HandsEachMailOverOnce) {
  ASSERT_TRUE(outbox_->add({mail("1"), mail("2")}));
  EXPECT_EQ(outbox_->hand_over({"1", "nobody's"}), false);
  EXPECT_THAT(due(), ElementsAre("1", "2"));
  EXPECT_EQ(outbox_->hand_over({"1"}), true);
  EXPECT_EQ(outbox_->hand_over({"1", "2"}), false);
  EXPECT_THAT(due(), ElementsAre("2"));
  ASSERT_TRUE(outbox_->postpone({"1"}, kNow + 5, true));
  EXPECT_THAT(due(), ElementsAre("2"));
  EXPECT_THAT(due(kNow + 5), ElementsAre("2", "1"));
  EXPECT_EQ(outbox_->due(kNow + 5, 5)->at(1).tries, 1);
  ASSERT_TRUE(outbox_->finish({"1", "2"}, MailState::kSent, kNow));
  EXPECT_THAT(due(kNow + 5), IsEmpty());
  // What is done stays done.
  ASSERT_TRUE(outbox_->postpone({"1"}, kNow, false));
  EXPECT_EQ(outbox_->add({mail("1")}), 0U);
  EXPECT_THAT(due(), IsEmpty());
}

TEST_P(OutboxTest, EndsWhatWasInterrupted) {
  ASSERT_TRUE(outbox_->add({mail("1"), mail("2")}));
  ASSERT_TRUE(outbox_->hand_over({"1"}));
  open_outbox();  // the program was killed and started again
  EXPECT_THAT(outbox_->end_interrupted(kNow).value_or(Texts{}), ElementsAre("1"));
  EXPECT_THAT(outbox_->end_interrupted(kNow).value_or(Texts{"x"}), IsEmpty());
  EXPECT_THAT(due(), ElementsAre("2"));
}

TEST_P(OutboxTest, FindsAllMailsOfADigest) {
  std::vector<OutgoingMail> mails;
  Texts ids;
  for (int i = 0; i < 1200; ++i) {
    mails.push_back(mail(fmt::format("{:05}", i)));
    mails.back().digest = "array 4700";
    ids.push_back(mails.back().id);
  }
  EXPECT_EQ(outbox_->add(mails), 1200U);
  EXPECT_EQ(outbox_->of_digest("array 4700")->size(), 1200U);
  EXPECT_EQ(outbox_->hand_over(ids), true);
  EXPECT_THAT(*outbox_->of_digest("array 4700"), IsEmpty());
  ASSERT_TRUE(outbox_->finish(ids, MailState::kDry, kNow));
  EXPECT_EQ(outbox_->dry_people(kNow), 1);
  EXPECT_EQ(outbox_->dry_people(kNow + 1), 0);
}

TEST_P(OutboxTest, RemembersWhatUsersDoNotWant) {
  EXPECT_EQ(outbox_->first_started(kReportsStarted, kNow), kNow);
  EXPECT_EQ(outbox_->first_started(kReportsStarted, kNow + 5), kNow);
  EXPECT_EQ(outbox_->first_started(kDigestsStarted, kNow + 7), kNow + 7) << "on its own";
  ASSERT_TRUE(outbox_->mute("ada", "time-limit", kNow + 10));
  ASSERT_TRUE(outbox_->note_told("ada", {"time-limit", "mem-excess"}, kNow));
  EXPECT_THAT(*outbox_->muted("ada", kNow), ElementsAre("time-limit"));
  EXPECT_THAT(*outbox_->muted("ada", kNow + 10), IsEmpty());
  EXPECT_THAT(*outbox_->muted("bob", kNow), IsEmpty());
  EXPECT_FALSE(outbox_->mute("", "x", kNow));
  EXPECT_FALSE(outbox_->mute("ada", "", kNow));
}

TEST_P(OutboxTest, KeepsAnOptOutUntilItIsWithdrawn) {
  auto window = update(kNow - kHour, kNow, {});
  window.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}}};
  ASSERT_TRUE(db_->writer().write(window));
  for (const char* user : {"ada", "gone"}) {
    ASSERT_TRUE(outbox_->mute(user, "*", kUntilWithdrawn));
  }
  ASSERT_TRUE(outbox_->note_told("ada", {"*"}, kNow));
  ASSERT_TRUE(outbox_->purge(kNow + 3000 * kDay, kNow + 3000 * kDay));
  EXPECT_THAT(*outbox_->muted("ada", kNow + 3000 * kDay), ElementsAre("*")) << "years later";
  EXPECT_THAT(*outbox_->muted("gone", kNow), IsEmpty()) << "purged with the user";
  ASSERT_TRUE(outbox_->mute("ada", "*", 0));
  EXPECT_THAT(*outbox_->muted("ada", kNow), IsEmpty());
}

TEST_P(OutboxTest, PurgesWhatIsOldAndUsersWhoAreGone) {
  auto window = update(kNow - kHour, kNow, {});
  window.users = std::vector<model::User>{{.name = "ada", .projects = {"fluids"}}};
  ASSERT_TRUE(db_->writer().write(window));
  ASSERT_TRUE(outbox_->add({mail("1"), mail("2")}));
  ASSERT_TRUE(outbox_->finish({"1"}, MailState::kSent, kNow));
  ASSERT_TRUE(outbox_->note_told("ada", {"old"}, kNow - 1));
  ASSERT_TRUE(outbox_->mute("ada", "kept", kNow + 5));
  ASSERT_TRUE(outbox_->mute("gone", "kept", kNow + 5));
  EXPECT_EQ(outbox_->first_started(kReportsStarted, kNow - 5), kNow - 5);
  ASSERT_TRUE(outbox_->purge(kNow + 1, kNow));
  EXPECT_EQ(outbox_->add({mail("1"), mail("2")}), 1U) << "a queued mail stays";
  EXPECT_THAT(*outbox_->muted("ada", kNow), ElementsAre("kept"));
  EXPECT_THAT(*outbox_->muted("gone", kNow), IsEmpty());
  EXPECT_EQ(outbox_->first_started(kReportsStarted, kNow), kNow - 5);
}

INSTANTIATE_TEST_SUITE_P(,
                         OutboxTest,
                         ::testing::Values(Backend::kSqlite, Backend::kPostgres),
                         backend_name);

}  // namespace
}  // namespace ceems::store
