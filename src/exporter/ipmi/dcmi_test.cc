#include "exporter/ipmi/dcmi.h"

#include <gtest/gtest.h>

#include "exporter/ipmi/conversation.h"
#include "exporter/ipmi/fake_port.h"
#include "host/read_file.h"
#include "testing/temp_dir.h"

namespace ceems::exporter::ipmi {
namespace {

using std::chrono::milliseconds;

TEST(DcmiReading, SendsTheRequestOfTheStandard) {
  const Request request = power_reading_request();
  EXPECT_EQ(request.netfn, 0x2c);
  EXPECT_EQ(request.command, 0x02);
  EXPECT_EQ(request.data, (Bytes{0xdc, 0x01, 0x00, 0x00}));
}

TEST(DcmiReading, ReadsLittleEndianWatts) {
  const auto power = decode_power_reading(good_reading());
  ASSERT_TRUE(power);
  EXPECT_EQ(power->current, 321);
  EXPECT_EQ(power->minimum, 100);
  EXPECT_EQ(power->maximum, 500);
  EXPECT_EQ(power->average, 300);
  Bytes large = good_reading();
  large[2] = 0xfe;
  large[3] = 0xff;
  EXPECT_EQ(decode_power_reading(large)->current, 65534);
  large[2] = 0xff;
  EXPECT_EQ(decode_power_reading(large)->current, 0) << "no value";
  large[3] = 0x7f;
  EXPECT_EQ(decode_power_reading(large)->current, 0) << "no value";
}

TEST(DcmiReading, RefusesInvalidReadings) {
  const auto refused = [](Bytes answer) {
    const auto power = decode_power_reading(answer);
    EXPECT_FALSE(power);
    return power ? std::string() : power.error().message;
  };
  EXPECT_EQ(refused({}), "expected a completion code, got an empty answer");
  EXPECT_EQ(refused({0xc1}), "completion code 0xc1: the BMC does not know this command");
  Bytes code = good_reading();
  code[0] = 0xc0;
  EXPECT_EQ(refused(code), "completion code 0xc0: node busy");
  Bytes group = good_reading();
  group[1] = 0x00;
  EXPECT_EQ(refused(group), "expected an answer of group DCMI (0xdc), got 0x00");
  Bytes inactive = good_reading();
  inactive[18] = 0x00;
  EXPECT_EQ(refused(inactive), "power measurement is not active (state 0x00)");
  for (std::size_t size = 1; size < good_reading().size(); ++size) {
    Bytes cut = good_reading();
    cut.resize(size);
    EXPECT_EQ(refused(cut), fmt::format("expected a power reading of 19 bytes, got {}", size));
  }
}

TEST(LanAddress, IsReadFromChannelOne) {
  EXPECT_EQ(lan_address_request().data, (Bytes{0x01, 0x03, 0x00, 0x00}));
  EXPECT_EQ(lan_address_request().netfn, 0x0c);
  EXPECT_EQ(decode_lan_address(Bytes{0x00, 0x11, 192, 0, 2, 17}), "192.0.2.17");
  EXPECT_FALSE(decode_lan_address(Bytes{0x80, 0x11, 192, 0, 2, 17}));
  EXPECT_FALSE(decode_lan_address(Bytes{0x00, 0x11, 192, 0, 2}));
  EXPECT_FALSE(decode_lan_address(Bytes{0x00, 0x11, 0, 0, 0, 0}));
  EXPECT_FALSE(decode_lan_address({}));
}

TEST(Conversation, DiscardsOtherMessages) {
  FakePort port([](const Request& request, long id) {
    Message event = answer_to(request, id, {0x01});
    event.response = false;
    Message other_command = answer_to(request, id, {0x02});
    other_command.command = 0x55;
    return std::vector<Message>{event, answer_to(request, id - 1, {0x03}), other_command,
                                answer_to(request, id, {0x00, 0xdc})};
  });
  Conversation conversation(port);
  EXPECT_EQ(conversation.ask(power_reading_request(), milliseconds(1000)), (Bytes{0x00, 0xdc}));
}

TEST(Conversation, ALateAnswerIsNotMistakenForTheNextOne) {
  std::vector<Message> late;
  int requests = 0;
  FakePort port([&](const Request& request, long id) {
    std::vector<Message> now = std::move(late);
    late.clear();
    const auto number = static_cast<std::uint8_t>(++requests);
    if (requests == 1) {
      late.push_back(answer_to(request, id, {0x00, number}));
    } else {
      now.push_back(answer_to(request, id, {0x00, number}));
    }
    return now;
  });
  Conversation conversation(port);
  const auto first = conversation.ask(power_reading_request(), milliseconds(10));
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(conversation.ask(power_reading_request(), milliseconds(1000)), (Bytes{0x00, 2}));
  EXPECT_EQ(conversation.ask(power_reading_request(), milliseconds(1000)), (Bytes{0x00, 3}));
}

TEST(Conversation, EndsWhenTheDeviceNeverStopsSending) {
  class Chatter final : public Port {
   public:
    Result<> send(const Request& /*request*/, long /*id*/) override { return {}; }
    Result<Message> receive(Deadline /*deadline*/, const std::stop_token& /*stop*/) override {
      return Message{.response = true, .id = -1, .netfn = 0, .command = 0, .data = {}};
    }
  } port;
  Conversation conversation(port);
  const auto answer = conversation.ask(power_reading_request(), milliseconds(20));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::kTimeout);
}

TEST(Conversation, RefusesAnEmptyAnswer) {
  FakePort port([](const Request& request, long id) {
    return std::vector<Message>{answer_to(request, id, {})};
  });
  Conversation conversation(port);
  EXPECT_EQ(conversation.ask(power_reading_request(), milliseconds(1000)).error().code,
            ErrorCode::kParse);
}

TEST(OpenIpmi, TriesTheThreePlacesOfADevice) {
  const testing::TempDir dev;
  std::vector<std::string> tried;
  const auto none = open_ipmi(dev.path(), 3, [&](const char* path) {
    tried.emplace_back(path);
    return host::open_file(path);
  });
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  const std::string root = dev.path().string();
  EXPECT_EQ(tried,
            (std::vector<std::string>{root + "/ipmi3", root + "/ipmi/3", root + "/ipmidev/3"}));
}

TEST(OpenIpmi, ReportsWhyADeviceCannotBeUsed) {
  const testing::TempDir dev;
  dev.write("ipmi/0", "a plain file");
  const auto plain = open_ipmi(dev.path(), 0, host::open_file);
  ASSERT_FALSE(plain);
  EXPECT_EQ(plain.error().message, dev.path().string() + "/ipmi/0: not an IPMI device");
  const auto refused = open_ipmi(dev.path(), 0, [](const char* path) -> Result<UniqueFd> {
    return fail(errno_error(EACCES, std::string("open ") + path));
  });
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPermissionDenied);
}

}  // namespace
}  // namespace ceems::exporter::ipmi
