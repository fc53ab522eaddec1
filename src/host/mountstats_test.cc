#include "host/mountstats.h"

#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace ceems::host {
namespace {

constexpr std::string_view kOld =
    "no device mounted on / with fstype rootfs\n"
    "device /dev/sda1 mounted on /boot with fstype ext4\n"
    "device srv:/home mounted on /home with fstype nfs statvers=1.0\n"
    "\topts:\trw,vers=3,rsize=1048576,proto=tcp\n"
    "\tage:\t1395\n"
    "\tcaps:\tcaps=0x3fef,wtmult=4096\n"
    "\tsec:\tflavor=1,pseudoflavor=1\n"
    "\tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25\n"
    "\tbytes:\t100 200 30 40 500 600 7 8\n"
    "\tRPC iostats version: 1.0  p/v: 100003/3 (nfs)\n"
    "\txprt:\ttcp 875 1 1 0 0 35 35 0 35 0\n"
    "\tper-op statistics\n"
    "\t        NULL: 0 0 0 0 0 0 0 0\n"
    "\t        READ: 10 12 1 1000 90000 5 60 70\n"
    "\n"
    "device proc mounted on /proc with fstype proc\n";

constexpr std::string_view kNew =
    "device srv:/a\\040b mounted on /mnt/x with fstype nfs4 statvers=1.1\n"
    "\topts:\trw,vers=4.2\n"
    "\timpl_id:\tname='',domain='',date='0,0'\n"
    "\tnfsv4:\tbm0=0xfdffbfff,acl=0x3,sessions,pnfs=not configured\n"
    "\tbytes:\t1 2 3 4 5 6 0 0 \n"
    "\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n"
    "\txprt:\ttcp 0 0 2 0 38 27021 27021 0 27021 0 2 0 0\n"
    "\txprt:\ttcp 0 0 2 0 38 27021 27021 0 27021 0 2 0 0\n"
    "\tper-op statistics\n"
    "\t     GETATTR: 7 7 0 700 1400 1 20 22 3\n";

/// The form "source mount_point bytes operation:columns/errors ..." of each mount, one per line.
std::string text_of(const NfsMounts& mounts) {
  std::string text;
  for (const NfsMount& mount : mounts.mounts) {
    text += fmt::format("{} {} ", mount.source, mount.mount_point);
    if (mount.bytes) {
      text += fmt::format("{},{},{},{},{},{}", mount.bytes->read, mount.bytes->written,
                          mount.bytes->direct_read, mount.bytes->direct_written,
                          mount.bytes->server_read, mount.bytes->server_written);
    }
    for (const NfsOperation& operation : mount.operations) {
      text += fmt::format(" {}:{}/{}", operation.name, fmt::join(operation.columns, ","),
                          operation.errors ? std::to_string(*operation.errors) : "-");
    }
    text += '\n';
  }
  return text;
}

TEST(Mountstats, HaveMountsOfBothVersions) {
  NfsMounts mounts;
  const std::string text = std::string(kOld) + std::string(kNew);
  EXPECT_TRUE(parse_mountstats(text, 10, mounts));
  EXPECT_EQ(text_of(mounts),
            "srv:/home /home 100,200,30,40,500,600 NULL:0,0,0,0,0,0,0,0/- "
            "READ:10,12,1,1000,90000,5,60,70/-\n"
            "srv:/a\\040b /mnt/x 1,2,3,4,5,6 GETATTR:7,7,0,700,1400,1,20,22/3\n");
  EXPECT_EQ(mounts.left_out, 0U);
  EXPECT_TRUE(parse_mountstats("", 10, mounts));
  EXPECT_TRUE(mounts.mounts.empty());
}

TEST(Mountstats, LeaveOutMountsBeyondTheLimit) {
  NfsMounts mounts;
  const std::string text = std::string(kOld) + std::string(kNew);
  EXPECT_TRUE(parse_mountstats(text, 1, mounts));
  ASSERT_EQ(mounts.mounts.size(), 1U);
  EXPECT_EQ(mounts.mounts[0].source, "srv:/home");
  EXPECT_EQ(mounts.mounts[0].operations.size(), 2U);  // the other mount has its own
  EXPECT_EQ(mounts.left_out, 1U);
}

TEST(Mountstats, LoseOnlyMalformedLines) {
  for (const char* line :
       {"\tbytes:\t1 2 3 4 5", "\tbytes:\t1 2 3 4 5 x", "\tbytes:",
        "\tper-op statistics\n\tREAD: 1 2", "\tper-op statistics\n\tREAD: 1 2 3 4 5 6 7 x",
        "\tper-op statistics\n\tREAD 1 2 3 4 5 6 7 8",
        "\tper-op statistics\n\t\x01: 1 2 3 4 5 6 7 8",
        "\tper-op statistics\n\tREAD: 1 2 3 4 5 6 7 8 x",
        "\tper-op statistics\n\tREAD: 18446744073709551616 2 3 4 5 6 7 8", "device", "device x",
        "device x mounted on", "device x mounted on /x with", "device x mounted on /x with fstype",
        "device x:/ mounted on /x with fstype nfs",
        "device x:/ mounted on /x with fstype nfs statvers=2.0",
        "device x:/ mounted on /x with fstype nfs4 version=1.1"}) {
    NfsMounts mounts;
    const std::string text = "device a:/ mounted on /a with fstype nfs statvers=1.1\n" +
                             std::string(line) + "\n" + std::string(kNew);
    const auto done = parse_mountstats(text, 10, mounts);
    ASSERT_FALSE(done) << line;
    EXPECT_EQ(done.error().code, ErrorCode::kParse);
    EXPECT_TRUE(text_of(mounts).starts_with("a:/ /a \nsrv:/a\\040b /mnt/x 1,2,3"))
        << text_of(mounts);
  }
}

TEST(Mountstats, ReportThatTheTextIsCut) {
  for (std::size_t size = 1; size < kNew.size(); ++size) {
    NfsMounts mounts;
    const bool whole_line = kNew[size - 1] == '\n';
    EXPECT_EQ(parse_mountstats(kNew.substr(0, size), 10, mounts).has_value(), whole_line) << size;
    for (const NfsMount& mount : mounts.mounts) {
      EXPECT_TRUE(mount.operations.empty());  // the only one ends with the text
    }
  }
}

TEST(Mountstats, OfAnEndlessPathAreRefused) {
  NfsMounts mounts;
  const std::string text =
      "device srv:/ mounted on /" + std::string(2000, 'x') + " with fstype nfs statvers=1.1\n";
  EXPECT_FALSE(parse_mountstats(text, 10, mounts));
  EXPECT_TRUE(mounts.mounts.empty());
}

TEST(Mountstats, HaveABoundedNumberOfOperations) {
  std::string text = "device a:/ mounted on /a with fstype nfs statvers=1.1\n\tper-op statistics\n";
  for (int i = 0; i < 10'000; ++i) {
    text += fmt::format("\tOP{}: 1 2 3 4 5 6 7 8\n", i);
  }
  NfsMounts mounts;
  EXPECT_TRUE(parse_mountstats(text, 10, mounts));
  ASSERT_EQ(mounts.mounts.size(), 1U);
  EXPECT_EQ(mounts.mounts[0].operations.size(), 256U);
}

}  // namespace
}  // namespace ceems::host
