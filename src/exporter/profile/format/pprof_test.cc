#include "exporter/profile/format/pprof.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <protozero/pbf_reader.hpp>

#include "base/utf8.h"
#include "exporter/profile/format/test_profile.h"
#include "net/gunzip.h"

namespace ceems::exporter::profile {
namespace {

using protozero::pbf_reader;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// All fields of https://github.com/google/pprof/blob/main/proto/profile.proto that are read here.
/// Any other field is a failure.
struct Decoded {
  struct Sample {
    std::vector<std::uint64_t> locations;
    std::vector<std::int64_t> values;
  };
  struct Location {
    std::uint64_t id = 0, mapping = 0;
    std::vector<std::uint64_t> functions;
  };
  struct Function {
    std::uint64_t id = 0;
    std::int64_t name = 0;
  };
  std::vector<std::pair<std::int64_t, std::int64_t>> sample_types, period_types;
  std::vector<Sample> samples;
  std::vector<std::uint64_t> mappings;
  std::vector<Location> locations;
  std::vector<Function> functions;
  std::vector<std::string> texts;
  std::int64_t time = 0, duration = 0, period = 0;

  [[nodiscard]] std::string type(const std::pair<std::int64_t, std::int64_t>& type) const {
    return text(type.first) + "/" + text(type.second);
  }
  [[nodiscard]] std::string text(std::int64_t index) const {
    return texts.at(static_cast<std::size_t>(index));
  }
  /// "leaf caller ... process=nanoseconds" of each sample.
  [[nodiscard]] std::vector<std::string> stacks() const {
    std::vector<std::string> all;
    for (const Sample& sample : samples) {
      std::string line;
      for (const std::uint64_t id : sample.locations) {
        const Location& location = locations.at(id - 1);
        EXPECT_EQ(location.id, id);
        EXPECT_EQ(location.mapping, 1U);
        EXPECT_EQ(location.functions.size(), 1U);
        const Function& function = functions.at(location.functions.at(0) - 1);
        EXPECT_EQ(function.id, location.functions.at(0));
        line += (line.empty() ? "" : " ") + text(function.name);
      }
      EXPECT_EQ(sample.values.size(), 1U);
      all.push_back(line + "=" + std::to_string(sample.values.at(0)));
    }
    return all;
  }
};

std::pair<std::int64_t, std::int64_t> value_type(pbf_reader reader) {
  std::pair<std::int64_t, std::int64_t> type;
  while (reader.next()) {
    EXPECT_LE(reader.tag(), 2U);
    (reader.tag() == 1 ? type.first : type.second) = reader.get_int64();
  }
  return type;
}

Decoded::Sample sample(pbf_reader reader) {
  Decoded::Sample sample;
  while (reader.next()) {
    if (reader.tag() == 1) {
      const auto ids = reader.get_packed_uint64();
      sample.locations.assign(ids.begin(), ids.end());
    } else {
      EXPECT_EQ(reader.tag(), 2U);
      const auto values = reader.get_packed_int64();
      sample.values.assign(values.begin(), values.end());
    }
  }
  return sample;
}

Decoded::Location location(pbf_reader reader) {
  Decoded::Location location;
  while (reader.next()) {
    if (reader.tag() == 4) {
      pbf_reader line = reader.get_message();
      EXPECT_TRUE(line.next(1));
      location.functions.push_back(line.get_uint64());
      EXPECT_FALSE(line.next());
    } else {
      EXPECT_LE(reader.tag(), 2U);  // no address
      (reader.tag() == 1 ? location.id : location.mapping) = reader.get_uint64();
    }
  }
  return location;
}

Decoded::Function function(pbf_reader reader) {
  Decoded::Function function;
  while (reader.next()) {
    if (reader.tag() == 1) {
      function.id = reader.get_uint64();
    } else {
      EXPECT_EQ(reader.tag(), 2U);  // no file
      function.name = reader.get_int64();
    }
  }
  return function;
}

Decoded decode(const std::string& message) {
  Decoded decoded;
  pbf_reader reader(message);
  while (reader.next()) {
    switch (reader.tag()) {
      case 1:
        decoded.sample_types.push_back(value_type(reader.get_message()));
        break;
      case 2:
        decoded.samples.push_back(sample(reader.get_message()));
        break;
      case 3: {
        pbf_reader mapping = reader.get_message();
        EXPECT_TRUE(mapping.next(1));
        decoded.mappings.push_back(mapping.get_uint64());
        EXPECT_FALSE(mapping.next());
        break;
      }
      case 4:
        decoded.locations.push_back(location(reader.get_message()));
        break;
      case 5:
        decoded.functions.push_back(function(reader.get_message()));
        break;
      case 6:
        decoded.texts.push_back(reader.get_string());
        break;
      case 9:
        decoded.time = reader.get_int64();
        break;
      case 10:
        decoded.duration = reader.get_int64();
        break;
      case 11:
        decoded.period_types.push_back(value_type(reader.get_message()));
        break;
      case 12:
        decoded.period = reader.get_int64();
        break;
      default:
        ADD_FAILURE() << "field " << reader.tag();
        reader.skip();
    }
  }
  return decoded;
}

Decoded decode(const Profile& profile) {
  return decode(encode_pprof(profile, PprofUse::kPush));
}

TEST(Pprof, HoldsSamplesAsCpuTimeWithTheLeafFirst) {
  const Decoded decoded = decode(small_profile());
  EXPECT_THAT(decoded.stacks(),
              ElementsAre("solve main app=72164946", "copy_page solve main app=20618556",
                          "run.py run main app=10309278"));
  ASSERT_EQ(decoded.sample_types.size(), 1U);
  EXPECT_EQ(decoded.type(decoded.sample_types[0]), "cpu/nanoseconds");
  ASSERT_EQ(decoded.period_types.size(), 1U);
  EXPECT_EQ(decoded.type(decoded.period_types[0]), "cpu/nanoseconds");
  EXPECT_EQ(decoded.period, 10'309'278);  // 1e9 / 97, rounded down
  EXPECT_THAT(decoded.mappings, ElementsAre(1U));
  EXPECT_EQ(decoded.locations.size(), 5U);
  EXPECT_EQ(decoded.functions.size(), 5U);
  EXPECT_EQ(decoded.texts.at(0), "");
}

TEST(Pprof, HasTheTimeOfItsEndWhenPushedAndADurationInAFile) {
  const Decoded pushed = decode(small_profile());
  EXPECT_EQ(pushed.time, 1'767'225'630'000'000'000);
  EXPECT_EQ(pushed.duration, 0);
  const Decoded file = decode(encode_pprof(small_profile(), PprofUse::kFile));
  EXPECT_EQ(file.time, 1'767'225'600'000'000'000);
  EXPECT_EQ(file.duration, 30'000'000'000);
  EXPECT_EQ(file.stacks(), pushed.stacks());
}

TEST(Pprof, OfNothingIsStillAProfile) {
  Profile profile;
  profile.rate = 0;
  const Decoded decoded = decode(profile);
  EXPECT_THAT(decoded.samples, IsEmpty());
  EXPECT_THAT(decoded.locations, IsEmpty());
  EXPECT_THAT(decoded.mappings, ElementsAre(1U));
  EXPECT_THAT(decoded.texts, ElementsAre("", "cpu", "nanoseconds"));
  EXPECT_EQ(decoded.period, 1'000'000'000);
}

TEST(Pprof, SharesALocationBetweenFramesOfOneName) {
  Profile profile = profile_of({"f", "g", "f", "", "[unknown]"}, 3);
  profile.frames[0].name.clear();
  profile.rate = 100;
  const Decoded decoded = decode(profile);
  EXPECT_THAT(decoded.stacks(), ElementsAre("[unknown] [unknown] f g f pid_unknown=30000000"));
  EXPECT_EQ(decoded.locations.size(), 4U);
  // Recursion keeps all its frames.
  EXPECT_EQ(decoded.samples.at(0).locations.size(), 6U);
}

TEST(Pprof, KeepsHostileNamesReadable) {
  const Decoded decoded = decode(
      profile_of({std::string("a\0b", 3), "\xff\xfe", "x;y\n</script>", std::string(5000, 'n')}));
  ASSERT_EQ(decoded.texts.size(), 8U);
  for (const std::string& text : decoded.texts) {
    EXPECT_TRUE(is_utf8(text));
    EXPECT_LE(text.size(), 2048U);
  }
  EXPECT_EQ(decoded.texts[4], "x;y </script>");
  EXPECT_EQ(decoded.texts[6], "a\uFFFDb");
}

TEST(Pprof, HoldsTenThousandStacks) {
  const Profile profile = many_stacks(10'000);
  const std::string message = encode_pprof(profile, PprofUse::kPush);
  const Decoded decoded = decode(message);
  ASSERT_EQ(decoded.samples.size(), 10'000U);
  std::int64_t total = 0;
  for (const Decoded::Sample& one : decoded.samples) {
    EXPECT_EQ(one.locations.size(), 21U);
    total += one.values.at(0);
  }
  std::int64_t expected = 0;
  for (const Stack& stack : profile.stacks) {
    expected += static_cast<std::int64_t>(stack.samples) * 10'309'278;
  }
  EXPECT_EQ(total, expected);
  EXPECT_EQ(decoded.functions.size(), 1001U);
  const auto packed = pprof(profile, PprofUse::kPush);
  ASSERT_TRUE(packed);
  EXPECT_LT(packed->size(), message.size());
  const auto unpacked = net::gunzip(*packed, message.size());
  ASSERT_TRUE(unpacked) << unpacked.error().message;
  EXPECT_EQ(*unpacked, message);
}

TEST(Pprof, ValuesDoNotOverflow) {
  const Decoded decoded = decode(profile_of({"f"}, std::numeric_limits<std::uint64_t>::max()));
  EXPECT_THAT(decoded.stacks(), ElementsAre("f p=9223372036854775807"));
}

}  // namespace
}  // namespace ceems::exporter::profile
