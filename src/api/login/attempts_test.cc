#include "api/login/attempts.h"

#include <gtest/gtest.h>

namespace ceems::api::login {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const std::chrono::steady_clock::time_point kStart{std::chrono::hours(5)};

TEST(Attempts, FiveWrongPasswordsBlockAUserAtAnAddress) {
  Attempts attempts;
  for (int i = 0; i < Attempts::kPerUser; ++i) {
    EXPECT_EQ(attempts.wait("ada", "192.0.2.1", kStart), seconds(0)) << i;
    attempts.failed("ada", "192.0.2.1", kStart + seconds(i));
  }
  EXPECT_EQ(attempts.wait("ada", "192.0.2.1", kStart + seconds(60)), seconds(14 * 60));
  // Neither another user there nor the user elsewhere is kept out.
  EXPECT_EQ(attempts.wait("bob", "192.0.2.1", kStart), seconds(0));
  EXPECT_EQ(attempts.wait("ada", "192.0.2.2", kStart), seconds(0));
  EXPECT_EQ(attempts.wait("ada", "192.0.2.1", kStart + minutes(15)), seconds(0));
}

TEST(Attempts, ManyWrongUsersBlockAnAddress) {
  Attempts attempts;
  for (int i = 0; i < Attempts::kPerAddress; ++i) {
    attempts.failed("user" + std::to_string(i), "192.0.2.1", kStart);
  }
  EXPECT_EQ(attempts.wait("new", "192.0.2.1", kStart), seconds(15 * 60));
  EXPECT_EQ(attempts.wait("new", "192.0.2.2", kStart), seconds(0));
}

TEST(Attempts, AGoodPasswordResetsOnlyTheCountOfTheUser) {
  Attempts attempts;
  for (int i = 0; i < Attempts::kPerAddress; ++i) {
    if (i % Attempts::kPerUser == Attempts::kPerUser - 1) {
      attempts.succeeded("own", "192.0.2.1");
    }
    attempts.failed("own", "192.0.2.1", kStart);
  }
  EXPECT_GT(attempts.wait("other", "192.0.2.1", kStart), seconds(0));
}

TEST(Attempts, NeighboursInOneIpv6NetworkAreOneClient) {
  Attempts attempts;
  for (int i = 0; i < Attempts::kPerUser; ++i) {
    attempts.failed("ada", "2001:db8:1:2::" + std::to_string(i + 1), kStart);
  }
  EXPECT_GT(attempts.wait("ada", "2001:db8:1:2:ffff::1", kStart), seconds(0));
  EXPECT_EQ(attempts.wait("ada", "2001:db8:1:3::1", kStart), seconds(0));
}

TEST(Attempts, ManyAddressesDoNotEvictGuessers) {
  Attempts attempts;
  for (int i = 0; i < Attempts::kPerAddress; ++i) {
    attempts.failed("u" + std::to_string(i), "192.0.2.1", kStart);
  }
  for (std::size_t i = 0; i < Attempts::kMaxCounts / 3; ++i) {
    attempts.failed("ada", "198.51." + std::to_string(i), kStart);
  }
  EXPECT_GT(attempts.wait("x", "192.0.2.1", kStart), seconds(0));
}

}  // namespace
}  // namespace ceems::api::login
