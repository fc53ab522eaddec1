#include "net/unix_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ceems::net {
namespace {

using ::testing::HasSubstr;

std::string parts(std::string_view text, std::string_view socket = {}) {
  const auto read = parse_unix_url(text, socket);
  return read ? read->socket + " " + read->http : read.error().message;
}

TEST(UnixUrl, IsASocketAndAPathAfterAColon) {
  EXPECT_EQ(parts("unix:///run/p.sock"), "/run/p.sock http://localhost");
  EXPECT_EQ(parts("unix:/run/p.sock"), "/run/p.sock http://localhost");
  EXPECT_EQ(parts("unix:///run/p.sock:"), "/run/p.sock http://localhost");
  EXPECT_EQ(parts("unix:///run/p.sock:/base/?k=v"), "/run/p.sock http://localhost/base/?k=v");
  EXPECT_EQ(parts("unix:///run/p.sock:/a:b"), "/run/p.sock http://localhost/a:b");
}

TEST(UnixUrl, GoesOnBehindAKnownSocketWithoutColon) {
  EXPECT_EQ(parts("unix:///run/p.sock/api/v1?q=1", "/run/p.sock"),
            "/run/p.sock http://localhost/api/v1?q=1");
  EXPECT_EQ(parts("unix:///run/p.sock?q=1", "/run/p.sock"), "/run/p.sock http://localhost?q=1");
  EXPECT_EQ(parts("unix:///run/p.sock:/base/api", "/run/p.sock"),
            "/run/p.sock http://localhost/base/api");
  EXPECT_EQ(parts("unix:///run/other.sock", "/run/p.sock"), "/run/other.sock http://localhost");
}

TEST(UnixUrl, SaysWhatIsWrong) {
  for (const char* const none :
       {"unix:", "unix://", "unix::/prefix", "unix:run/p.sock", "http://a"}) {
    EXPECT_THAT(parts(none), HasSubstr("absolute path")) << none;
  }
  EXPECT_THAT(parts("unix://run/p.sock"), HasSubstr("no host"));
  EXPECT_THAT(parts("unix://localhost/run/p.sock"), HasSubstr("no host"));
  EXPECT_THAT(parts("unix:///run/p.sock:9090"), HasSubstr("begins with '/'"));
  EXPECT_THAT(parts("unix:///run/p.sock?k=v"), HasSubstr("after a colon"));
  EXPECT_THAT(parts("unix:///run/"), HasSubstr("must name a file"));
  EXPECT_THAT(parts(std::string("unix:///run/a\0b", 15)), HasSubstr("must name a file"));
  const std::string longest = "/" + std::string(kMaxUnixPathBytes - 1, 'x');
  EXPECT_EQ(parts("unix://" + longest), longest + " http://localhost");
  EXPECT_THAT(parts("unix://" + longest + "x"), HasSubstr("at most 107 bytes, this one 108"));
  EXPECT_TRUE(is_unix_url("unix:x"));
  EXPECT_FALSE(is_unix_url("http://unix:80"));
}

}  // namespace
}  // namespace ceems::net
