#include "exporter/profile/format/pprof.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <protozero/pbf_builder.hpp>

#include "exporter/profile/format/profile.h"
#include "net/encoding.h"

namespace ceems::exporter::profile {
namespace {

// Fields of profile.proto.
enum class ProfileField : protozero::pbf_tag_type {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
};
enum class ValueTypeField : protozero::pbf_tag_type { kType = 1, kUnit = 2 };
enum class SampleField : protozero::pbf_tag_type { kLocationId = 1, kValue = 2 };
enum class MappingField : protozero::pbf_tag_type { kId = 1 };
enum class LocationField : protozero::pbf_tag_type { kId = 1, kMappingId = 2, kLine = 4 };
enum class LineField : protozero::pbf_tag_type { kFunctionId = 1 };
enum class FunctionField : protozero::pbf_tag_type { kId = 1, kName = 2 };

constexpr std::int64_t kCpu = 1;          // in the string table
constexpr std::int64_t kNanoseconds = 2;  // in the string table
constexpr std::size_t kFirstName = 3;     // in the string table
constexpr std::uint64_t kMapping = 1;

using ProfileWriter = protozero::pbf_builder<ProfileField>;

void add_value_type(ProfileWriter& profile, ProfileField field) {
  protozero::pbf_builder<ValueTypeField> type(profile, field);
  type.add_int64(ValueTypeField::kType, kCpu);
  type.add_int64(ValueTypeField::kUnit, kNanoseconds);
}

/// The product, or the largest value of the field if it does not fit.
std::int64_t cpu_time(std::uint64_t samples, std::int64_t period) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  return samples > static_cast<std::uint64_t>(kMax / period)
             ? kMax
             : static_cast<std::int64_t>(samples) * period;
}

/// The names that are used, each with one location and one function of the same number.
class Locations {
 public:
  explicit Locations(const Profile& profile) : profile_(profile), ids_(profile.frames.size(), 0) {}

  std::uint64_t id(std::uint32_t frame) {
    std::uint64_t& id = ids_.at(frame);
    if (id == 0) {
      auto [found, added] = names_.try_emplace(shown_name(profile_.frames[frame]), names_.size());
      if (added) {
        order_.push_back(found->first);
      }
      id = found->second + 1;
    }
    return id;
  }

  void write(ProfileWriter& writer) const {
    for (std::uint64_t id = 1; id <= order_.size(); ++id) {
      protozero::pbf_builder<LocationField> location(writer, ProfileField::kLocation);
      location.add_uint64(LocationField::kId, id);
      location.add_uint64(LocationField::kMappingId, kMapping);
      protozero::pbf_builder<LineField> line(location, LocationField::kLine);
      line.add_uint64(LineField::kFunctionId, id);
    }
    for (std::uint64_t id = 1; id <= order_.size(); ++id) {
      protozero::pbf_builder<FunctionField> function(writer, ProfileField::kFunction);
      function.add_uint64(FunctionField::kId, id);
      function.add_int64(FunctionField::kName, static_cast<std::int64_t>(kFirstName + id - 1));
    }
    for (const std::string_view text : {"", "cpu", "nanoseconds"}) {
      writer.add_string(ProfileField::kStringTable, text.data(), text.size());
    }
    for (const std::string_view name : order_) {
      writer.add_string(ProfileField::kStringTable, name.data(), name.size());
    }
  }

 private:
  const Profile& profile_;
  std::vector<std::uint64_t> ids_;  ///< of each frame; 0: not used yet
  std::unordered_map<std::string, std::uint64_t> names_;
  std::vector<std::string_view> order_;  ///< keys of names_
};

}  // namespace

std::string encode_pprof(const Profile& profile, PprofUse use) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t period = std::max<std::int64_t>(kSecond / std::max(profile.rate, 1U), 1);
  std::string out;
  ProfileWriter writer(out);
  add_value_type(writer, ProfileField::kSampleType);
  Locations locations(profile);
  std::vector<std::uint64_t> ids;
  for (const Stack& stack : profile.stacks) {
    if (!shows_code(profile, stack)) {
      continue;
    }
    ids.clear();
    for (const std::uint32_t frame : stack.frames) {
      ids.push_back(locations.id(frame));
    }
    const std::int64_t value = cpu_time(stack.samples, period);
    protozero::pbf_builder<SampleField> sample(writer, ProfileField::kSample);
    sample.add_packed_uint64(SampleField::kLocationId, ids.begin(), ids.end());
    sample.add_packed_int64(SampleField::kValue, &value, &value + 1);
  }
  {
    protozero::pbf_builder<MappingField> mapping(writer, ProfileField::kMapping);
    mapping.add_uint64(MappingField::kId, kMapping);
  }
  locations.write(writer);
  using std::chrono::nanoseconds;
  const auto started = std::chrono::duration_cast<nanoseconds>(profile.started.time_since_epoch());
  if (use == PprofUse::kFile) {
    writer.add_int64(ProfileField::kTimeNanos, started.count());
    writer.add_int64(ProfileField::kDurationNanos, profile.duration.count());
  } else {
    writer.add_int64(ProfileField::kTimeNanos, (started + profile.duration).count());
  }
  add_value_type(writer, ProfileField::kPeriodType);
  writer.add_int64(ProfileField::kPeriod, period);
  return out;
}

Result<std::string> pprof(const Profile& profile, PprofUse use) {
  constexpr int kLevel = 6;  // the default of zlib and of Go
  std::string packed;
  net::Compressor gzip(net::Encoding::kGzip, kLevel);
  CEEMS_TRY_IN("profile", gzip.add(encode_pprof(profile, use), true, packed));
  return packed;
}

}  // namespace ceems::exporter::profile
