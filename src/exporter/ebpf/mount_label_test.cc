#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "exporter/ebpf/counts.h"

namespace ceems::exporter::ebpf {
namespace {

/// A place with these names, from the mount up to the root; true: the last of a mount point.
ebpf_place place_of(const std::vector<std::pair<bool, std::string>>& names) {
  ebpf_place place{};
  std::size_t at = 0;
  for (const auto& [last, name] : names) {
    place.text[at] = last ? 1 : 0;
    std::memcpy(&place.text[at + 1], name.c_str(), name.size() + 1);
    at += name.size() + 2;
  }
  place.length = static_cast<ebpf_u32>(at);
  std::memcpy(place.type, "lustre", 7);
  return place;
}

TEST(MountLabel, HasTheLastNameOfEachMountPoint) {
  const auto scratch = place_of({{true, "scratch"}, {false, "lustre"}});
  EXPECT_EQ(mount_label(scratch, false).text, "/scratch");
  EXPECT_EQ(mount_label(scratch, true).text, "/lustre/scratch");
  EXPECT_EQ(mount_label(scratch, false).type, "lustre");
  const auto nested = place_of({{true, "b"}, {false, "x"}, {true, "a"}, {false, "mnt"}});
  EXPECT_EQ(mount_label(nested, false).text, "/a/b");
  EXPECT_EQ(mount_label(nested, true).text, "/mnt/a/x/b");
}

TEST(MountLabel, HasAtMost64Bytes) {
  const auto deep = place_of({{true, std::string(40, 'b')}, {true, std::string(40, 'a')}});
  EXPECT_EQ(mount_label(deep, false).text, "/" + std::string(40, 'a') + "/" + std::string(22, 'b'));
}

TEST(MountLabel, EscapesWhatAJobPutsIntoNames) {
  EXPECT_EQ(mount_label(place_of({{true, "a\nb\xff"}}), false).text, "/a\\x0ab\\xff");
}

TEST(MountLabel, StaysInsideABrokenText) {
  ebpf_place place{};
  EXPECT_EQ(mount_label(place, false).text, "/");
  std::memset(place.text, 1, sizeof(place.text));
  std::memset(place.type, 'x', sizeof(place.type));
  place.length = 60000;
  EXPECT_LE(mount_label(place, false).text.size(), 64 * 4U);
  EXPECT_EQ(mount_label(place, false).type, std::string(16, 'x'));
}

}  // namespace
}  // namespace ceems::exporter::ebpf
