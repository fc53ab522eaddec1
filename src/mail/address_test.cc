#include "mail/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::mail {
namespace {

using ::testing::ElementsAre;

TEST(Addresses, TakesNamesAndAddresses) {
  EXPECT_THAT(addresses_of("ada", "example.org").value(), ElementsAre("ada@example.org"));
  EXPECT_THAT(addresses_of("a.b+c@x.example.com , ada,ada", "example.org").value(),
              ElementsAre("a.b+c@x.example.com", "ada@example.org"));
  EXPECT_FALSE(addresses_of("ada", ""));
}

TEST(Addresses, RefusesWhatCouldMeanSomethingElse) {
  for (const char* text : {"",
                           ",",
                           "-oQ/tmp@example.org",
                           "-x",
                           "a b@example.org",
                           "a@example.org\r\nBcc: eve@x.org",
                           "a@b@c.org ",
                           "\"a\"@example.org",
                           "<a@example.org>",
                           "a@-x.org",
                           "a@x..org",
                           ".a@x.org",
                           "a..b@x.org",
                           "a@",
                           "@x.org",
                           "a@[127.0.0.1]",
                           "|/bin/sh@x.org|",
                           "/etc/passwd",
                           "a@x.org,b@x.org,c@x.org,d@x.org,e@x.org,f@x.org",
                           "a@x_y.org",
                           "\xC3\xA9@x.org"}) {
    EXPECT_FALSE(addresses_of(text, "")) << text;
  }
  EXPECT_FALSE(is_address(std::string(65, 'a') + "@x.org"));
  EXPECT_TRUE(is_address(std::string(64, 'a') + "@x.org"));
  EXPECT_FALSE(is_address("a@" + std::string(256, 'a')));
}

}  // namespace
}  // namespace ceems::mail
