#include "api/mail/mute_page.h"

#include <gmock/gmock.h>

#include "api/server_test_support.h"
#include "mail/letter.h"

namespace ceems::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Mute : public ServerTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(ServerTest::SetUp());
    auto page = MutePage::create(
        std::string(64, 'k'), "https://x.example.org/", [this] { return db_->open_outbox(); },
        clock_);
    ASSERT_TRUE(page);
    page_ = std::move(*page);
    ApiOptions options;
    options.mute_page = page_.get();
    make(std::move(options));
    outbox_ = std::move(*db_->open_outbox());
  }
  net::Response post(const std::string& target, const std::string& form) {
    net::Request message = request_for("POST", target, {});
    EXPECT_TRUE(server_->needs_body(message));
    message.body = form;
    net::Response response;
    server_->handle(message, response);
    return response;
  }
  /// The path and query of the link.
  std::string link(const std::string& user, const std::string& rule) {
    return page_->url(user, rule).substr(std::string("https://x.example.org").size());
  }
  std::unique_ptr<MutePage> page_;
  std::unique_ptr<store::Outbox> outbox_;
};

TEST_F(Mute, AsksBeforeItMutes) {
  EXPECT_THAT(page_->url("ada", "time-limit"),
              StartsWith("https://x.example.org/mail/mute?token="));
  const auto asked = get(link("ada", "time-limit"));
  EXPECT_EQ(asked.status, 200);
  EXPECT_THAT(asked.body, HasSubstr("The suggestion &#39;time-limit&#39;: stop them, or"));
  EXPECT_THAT(asked.body, HasSubstr("<form method=\"post\">"));
  EXPECT_EQ(header(asked, "Cache-Control"), "no-store");
  EXPECT_THAT(*outbox_->muted("ada", kNow), IsEmpty());
  const auto done = request("POST", link("ada", "time-limit"));
  EXPECT_EQ(done.status, 200);
  EXPECT_THAT(done.body, HasSubstr("stopped for 90 days"));
  EXPECT_THAT(done.body, Not(HasSubstr("<form")));
  EXPECT_THAT(*outbox_->muted("ada", kNow + 89 * store::kDay), ElementsAre("time-limit"));
  EXPECT_THAT(*outbox_->muted("ada", kNow + 91 * store::kDay), IsEmpty());
  EXPECT_THAT(*outbox_->muted("bob", kNow), IsEmpty());
  EXPECT_EQ(request("POST", link("ada", "*")).status, 200);
  EXPECT_THAT(*outbox_->muted("ada", kNow), ElementsAre("*", "time-limit"));
}

TEST_F(Mute, StopsUntilItIsWithdrawn) {
  const std::int64_t years = kNow + 3000 * store::kDay;
  const std::string all = link("ada", "*");
  EXPECT_THAT(get(all).body, HasSubstr("value=\"always\""));
  const auto done = post(all, "for=always");
  EXPECT_THAT(done.body, HasSubstr("stopped until you want them again"));
  EXPECT_THAT(done.body, HasSubstr("<form method=\"post\">"));
  EXPECT_THAT(*outbox_->muted("ada", years), ElementsAre("*"));
  EXPECT_THAT(post(all, "for=again").body, HasSubstr("sent again"));
  EXPECT_THAT(*outbox_->muted("ada", kNow), IsEmpty());
  for (const char* other : {"", "for=ever", "x=always", "for", "%"}) {
    post(all, other);
    EXPECT_THAT(*outbox_->muted("ada", kNow + 89 * store::kDay), ElementsAre("*")) << other;
    EXPECT_THAT(*outbox_->muted("ada", years), IsEmpty()) << other;
  }
}

TEST_F(Mute, MailProgramsStopDigestsForGood) {
  const std::string month = link("ada", std::string(mail::kMonthlyDigest));
  EXPECT_THAT(get(month).body, HasSubstr("Mails about the month: stop them"));
  EXPECT_EQ(post(month, "List-Unsubscribe=One-Click").status, 200);
  EXPECT_THAT(*outbox_->muted("ada", kNow + 3000 * store::kDay), ElementsAre("monthly-digest"));
}

TEST_F(Mute, RefusesForgedAndOldLinks) {
  const std::string good = link("ada", "x");
  std::string other = good;
  other.back() = other.back() == 'A' ? 'B' : 'A';
  for (const std::string& target : {std::string("/mail/mute"), std::string("/mail/mute?token=x"),
                                    other, good.substr(0, good.size() - 3)}) {
    const auto response = request("POST", target);
    EXPECT_EQ(response.status, 404) << target;
    EXPECT_THAT(response.body, HasSubstr("not valid any more"));
  }
  EXPECT_EQ(request("PUT", good).status, 405);
  clock_.advance(std::chrono::hours(24 * 367));
  EXPECT_EQ(request("POST", good).status, 404);
  EXPECT_THAT(*outbox_->muted("ada", kNow), IsEmpty());
}

TEST_F(Mute, EscapesNamesAndKeepsQuietWithoutAddress) {
  EXPECT_THAT(get(link("ada", "<script>")).body, HasSubstr("&lt;script&gt;"));
  EXPECT_EQ(page_->url("", "x"), "");
  auto without = MutePage::create(std::string(64, 'k'), "", {}, clock_);
  ASSERT_TRUE(without);
  EXPECT_EQ((*without)->url("ada", "x"), "");
  EXPECT_FALSE(MutePage::create("short", "", {}, clock_));
  page_->close();
  EXPECT_EQ(request("POST", link("ada", "x")).status, 503);
}

}  // namespace
}  // namespace ceems::api
