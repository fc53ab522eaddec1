#include "exporter/profile/symbol/process_maps.h"

#include <unistd.h>

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/temp_dir.h"

namespace ceems::exporter::profile {
namespace {

using ::testing::IsEmpty;
using Kind = Mapping::Kind;

TEST(ProcessMaps, KeepsExecutableMappings) {
  const auto maps = parse_maps(
      "556ab0000000-556ab0002000 r--p 00000000 fd:01 1835 /usr/bin/cat\n"
      "556ab0002000-556ab0006000 r-xp 00002000 fd:01 1835                       /usr/bin/cat\n"
      "7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n"
      "7f1000000000-7f1000001000 rwxp 00000000 00:00 0 \n"
      "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]\n");
  ASSERT_EQ(maps.mappings.size(), 3U);
  EXPECT_EQ(maps.mappings[0], (Mapping{.start = 0x556ab0002000,
                                       .end = 0x556ab0006000,
                                       .offset = 0x2000,
                                       .dev_major = 0xfd,
                                       .dev_minor = 1,
                                       .inode = 1835,
                                       .kind = Kind::kFile,
                                       .path = "/usr/bin/cat"}));
  EXPECT_EQ(maps.mappings[1].kind, Kind::kAnonymous);
  EXPECT_EQ(maps.mappings[1].path, "");
  EXPECT_EQ(maps.mappings[2].kind, Kind::kVdso);
  EXPECT_FALSE(maps.truncated);
}

Mapping named(const std::string& name) {
  const auto maps = parse_maps("1000-2000 r-xp 00000000 00:01 7   " + name + "\n");
  return maps.mappings.empty() ? Mapping{} : maps.mappings[0];
}

TEST(ProcessMaps, TellsNamesApart) {
  EXPECT_TRUE(named("/opt/a.so (deleted)").deleted);
  EXPECT_EQ(named("/opt/a.so (deleted)").path, "/opt/a.so");
  EXPECT_EQ(named("/memfd:jit (deleted)").kind, Kind::kFile);
  EXPECT_EQ(named("//anon").kind, Kind::kAnonymous);
  EXPECT_EQ(named("[anon:v8]").kind, Kind::kAnonymous);
  EXPECT_EQ(named("[vsyscall]").kind, Kind::kSpecial);
  EXPECT_EQ(named("/a dir/with  blanks").path, "/a dir/with  blanks");
  EXPECT_EQ(named("/two\\012lines").path, "/two\nlines");
  EXPECT_EQ(named("/" + std::string(9000, 'x')).path.size(), 4096U);
}

TEST(ProcessMaps, LeavesOutMalformedLines) {
  for (const std::string line :
       {"", "x", "1000-2000", "1000 r-xp 0 0:0 0", "2000-1000 r-xp 0 0:0 0 /a",
        "1000-2000 r-x 0 0:0 0 /a", "1000-2000 r-xp zz 0:0 0 /a", "1000-2000 r-xp 0 00 0 /a",
        "1000-2000 r-xp 0 0:0 -1 /a", "1000-11112222333344445 r-xp 0 0:0 0 /a"}) {
    EXPECT_THAT(parse_maps(line).mappings, IsEmpty()) << line;
  }
  EXPECT_EQ(parse_maps("1000-3000 r-xp 0 0:0 0\n2000-4000 r-xp 0 0:0 0\n").mappings.size(), 1U);
}

TEST(ProcessMaps, KeepsABoundedNumber) {
  std::string text;
  for (unsigned i = 1; i <= kMaxMappings + 1; ++i) {
    text += fmt::format("{:x}000-{:x}000 r-xp 00000000 00:00 0\n", 2 * i, 2 * i + 1);
  }
  const auto maps = parse_maps(text);
  EXPECT_EQ(maps.mappings.size(), kMaxMappings);
  EXPECT_TRUE(maps.truncated);

  text.clear();
  for (unsigned i = 1; i <= 400; ++i) {
    text += fmt::format("{:x}000-{:x}000 r-xp 00000000 00:00 0 /{}\n", 2 * i, 2 * i + 1,
                        std::string(4095, 'p'));
  }
  const auto long_paths = parse_maps(text);
  EXPECT_EQ(long_paths.mappings.size(), 256U);
  EXPECT_TRUE(long_paths.truncated);
}

TEST(ProcessMaps, FindsAnAddress) {
  const auto maps = parse_maps("1000-2000 r-xp 0 0:0 0 /a\n3000-4000 r-xp 0 0:0 0 /b\n");
  EXPECT_EQ(maps.find(0xfff), nullptr);
  EXPECT_EQ(maps.find(0x1000)->path, "/a");
  EXPECT_EQ(maps.find(0x1fff)->path, "/a");
  EXPECT_EQ(maps.find(0x2000), nullptr);
  EXPECT_EQ(maps.find(0x3abc)->path, "/b");
  EXPECT_EQ(maps.find(~0ULL), nullptr);
}

TEST(ProcessMaps, AreReadOfARealProcess) {
  const auto maps = read_maps({}, ::getpid());
  ASSERT_TRUE(maps) << maps.error().message;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the address of a function
  const Mapping* own = maps->find(reinterpret_cast<std::uint64_t>(&parse_maps));
  ASSERT_NE(own, nullptr);
  EXPECT_THAT(own->path, ::testing::EndsWith("exporter_profile_symbol_test"));
  EXPECT_EQ(own->kind, Kind::kFile);
}

TEST(ProcessMaps, OfAProcessThatIsGoneAreAnError) {
  const testing::TempDir proc;
  const auto maps = read_maps({.proc = proc.path()}, 42);
  ASSERT_FALSE(maps);
  EXPECT_EQ(maps.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace ceems::exporter::profile
