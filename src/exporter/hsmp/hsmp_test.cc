#include "exporter/hsmp/hsmp.h"

#include <fcntl.h>

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "exporter/hsmp/fake_hsmp.h"

namespace ceems::exporter::hsmp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Numbers of messages in the order of the kernel's header.
constexpr std::uint32_t kPower = 0x04;
constexpr std::uint32_t kCap = 0x06;
constexpr std::uint32_t kCapMax = 0x07;
constexpr std::uint32_t kClocks = 0x0f;
constexpr std::uint32_t kCoreLimit = 0x10;
constexpr std::uint32_t kC0 = 0x11;
constexpr std::uint32_t kBandwidth = 0x14;

Reader reader_of(FakeHsmp& units) {
  return Reader([&units]() -> Result<std::unique_ptr<Port>> { return units.port(); });
}

TEST(Hsmp, ConvertsTheAnswersOfEachSocket) {
  FakeHsmp units;
  units.set(0, kPower, {182'500});
  units.set(0, kCap, {280'000});
  units.set(0, kCapMax, {400'000});
  units.set(0, kClocks, {1800, 2400});
  units.set(0, kCoreLimit, {3700});
  units.set(0, kC0, {42});
  units.set(0, kBandwidth, {460U << 20U | 123U << 8U | 27U});
  units.set(1, kPower, {90'000});
  Reader reader = reader_of(units);
  EXPECT_TRUE(reader.read({}));
  // Also at the second time, when it is known what socket 1 does not answer.
  EXPECT_THAT(reader.read({}).value(), ElementsAre(Socket{.number = 0,
                                                          .power_watts = 182.5,
                                                          .power_cap_watts = 280,
                                                          .power_cap_max_watts = 400,
                                                          .c0_percent = 42,
                                                          .ddr_max_gbps = 460,
                                                          .ddr_utilized_gbps = 123,
                                                          .fclk_mhz = 1800,
                                                          .mclk_mhz = 2400,
                                                          .cclk_limit_mhz = 3700},
                                                   Socket{.number = 1, .power_watts = 90}));
}

TEST(Hsmp, AsksOnceForAMessageThatTheUnitsDoNotKnow) {
  FakeHsmp units;
  units.set(0, kPower, {1000});
  Reader reader = reader_of(units);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(reader.read({}).value().size(), 1U);
  }
  EXPECT_EQ(units.requests(kBandwidth), 1);
  EXPECT_EQ(units.requests(kPower), 6) << "socket 0, and 1, which does not exist";
}

TEST(Hsmp, TriesAgainAfterAFailure) {
  FakeHsmp units;
  units.set(0, kPower, {1000});
  units.set(0, kC0, {5});
  units.set_failing(true);
  bool there = false;
  Reader reader([&]() -> Result<std::unique_ptr<Port>> {
    if (!there) {
      return fail(ErrorCode::kNotFound, "no device");
    }
    return units.port();
  });
  EXPECT_EQ(reader.read({}).error().message, "no device");
  there = true;
  EXPECT_THAT(reader.read({}).error().message, HasSubstr("Connection timed out"));
  units.set_failing(false);
  const auto sockets = reader.read({}).value();
  ASSERT_EQ(sockets.size(), 1U);
  EXPECT_EQ(sockets[0].c0_percent, 5) << "a failure does not mean that it is unknown";
}

TEST(Hsmp, ReportsAnEmptyMachineAndStops) {
  FakeHsmp units;
  Reader reader = reader_of(units);
  EXPECT_EQ(reader.read({}).error().message, "the kernel reports no socket with HSMP");
  std::stop_source stop;
  stop.request_stop();
  units.set(0, kPower, {1000});
  EXPECT_FALSE(reader.read(stop.get_token()));
}

TEST(HsmpDevice, MustExistAndBeADevice) {
  const auto open = [](const char* path) -> Result<UniqueFd> {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      return fail(errno_error(errno, path));
    }
    return UniqueFd(fd);
  };
  EXPECT_EQ(open_hsmp("/nonexistent/hsmp", open).error().message,
            "no device /nonexistent/hsmp (load the module amd_hsmp)");
  auto other = open_hsmp("/dev/null", open);
  ASSERT_TRUE(other);
  const auto answer = (*other)->ask(0, kPower, 1);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(answer.error().message, HasSubstr("message 0x04 to socket 0"));
}

}  // namespace
}  // namespace ceems::exporter::hsmp
