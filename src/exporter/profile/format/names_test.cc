#include <gtest/gtest.h>

#include "base/utf8.h"
#include "exporter/profile/format/profile.h"
#include "exporter/profile/format/test_profile.h"

namespace ceems::exporter::profile {
namespace {

TEST(ShownName, KeepsWhatIsReadable) {
  EXPECT_EQ(shown_name("std::vector<int>::push_back(int&&)"), "std::vector<int>::push_back(int&&)");
  EXPECT_EQ(shown_name("größe_€_😀"), "größe_€_😀");
  EXPECT_EQ(shown_name(""), "");
}

TEST(ShownName, IsOneLineOfCleanText) {
  EXPECT_EQ(shown_name("a\nb\r\tc\x0b"), "a b  c ");
  EXPECT_EQ(shown_name("a\xC2\x85z\xE2\x80\xA8y"), "a z y");
  EXPECT_EQ(shown_name(std::string_view("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(shown_name("a\x1b[31mb\x7f"), "a\uFFFD[31mb\uFFFD");
  EXPECT_EQ(shown_name("\uFEFFmain"), "\uFFFDmain");
  EXPECT_EQ(shown_name("x\u202Ey\u2066z\u200F"), "x\uFFFDy\uFFFDz\uFFFD");
  EXPECT_EQ(shown_name("bad\xff\xc0\x80utf"), "bad\uFFFD\uFFFD\uFFFDutf");
}

TEST(ShownName, IsBounded) {
  const std::string fits(kMaxNameBytes, 'n');
  EXPECT_EQ(shown_name(fits), fits);
  const std::string cut = shown_name(fits + "n");
  EXPECT_EQ(cut, std::string(kMaxNameBytes - 3, 'n') + "…");
  // Neither the cut nor the replacement of bytes makes it longer, or breaks a character.
  for (const std::string_view piece : {"€", "\xff", "😀", "\n"}) {
    for (const std::size_t before : {0, 1, 2, 3}) {
      std::string name(before, 'x');
      while (name.size() < std::size_t{3} * kMaxNameBytes) {
        name += piece;
      }
      const std::string shown = shown_name(name);
      EXPECT_LE(shown.size(), kMaxNameBytes);
      EXPECT_GT(shown.size(), kMaxNameBytes - 8);
      EXPECT_TRUE(is_utf8(shown));
      EXPECT_TRUE(shown.ends_with("…"));
    }
  }
}

TEST(ShownName, StandsForMissingNames) {
  EXPECT_EQ(shown_name(Frame{.name = "", .module = "", .kind = FrameKind::kProcess}),
            "pid_unknown");
  EXPECT_EQ(shown_name(Frame{.name = "", .module = "m", .kind = FrameKind::kNative}), "[unknown]");
  EXPECT_EQ(shown_name(Frame{.name = "f\n", .module = "", .kind = FrameKind::kJit}), "f ");
}

TEST(ShowsCode, NeedsAFrameThatIsNotTheProcess) {
  const Profile profile = small_profile();
  EXPECT_TRUE(shows_code(profile));
  EXPECT_TRUE(shows_code(profile, {.frames = {1, 0}, .samples = 1}));
  EXPECT_FALSE(shows_code(profile, {.frames = {0}, .samples = 1}));
  EXPECT_FALSE(shows_code(profile, {.frames = {}, .samples = 1}));
  EXPECT_FALSE(shows_code(profile, {.frames = {1, 0}, .samples = 0}));
  EXPECT_FALSE(shows_code(Profile{}));
}

}  // namespace
}  // namespace ceems::exporter::profile
