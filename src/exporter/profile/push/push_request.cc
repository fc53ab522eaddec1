#include "exporter/profile/push/push_request.h"

#include <protozero/pbf_builder.hpp>

#include "base/utf8.h"

namespace ceems::exporter::profile {
namespace {

// Fields of push.proto and of types/v1/types.proto.
enum class RequestField : protozero::pbf_tag_type { kSeries = 1 };
enum class SeriesField : protozero::pbf_tag_type { kLabels = 1, kSamples = 2 };
enum class LabelField : protozero::pbf_tag_type { kName = 1, kValue = 2 };
enum class SampleField : protozero::pbf_tag_type { kRawProfile = 1 };

}  // namespace

std::string encode_push_request(const PushTarget& target,
                                const std::map<std::string, std::string>& external_labels,
                                std::string_view raw_profile) {
  std::string out;
  constexpr std::size_t kLabelBytes = 512;
  out.reserve(raw_profile.size() + kLabelBytes);
  {
    protozero::pbf_builder<RequestField> request(out);
    protozero::pbf_builder<SeriesField> series(request, RequestField::kSeries);
    const auto add_label = [&](std::string_view name, std::string_view value) {
      protozero::pbf_builder<LabelField> label(series, SeriesField::kLabels);
      label.add_string(LabelField::kName, name.data(), name.size());
      label.add_string(LabelField::kValue, clean_text(value));
    };
    add_label("__name__", "process_cpu");
    add_label("__process_pid__", target.pid);
    add_label("service_name", target.service_name);
    for (const auto& [name, value] : external_labels) {
      add_label(name, value);
    }
    protozero::pbf_builder<SampleField> sample(series, SeriesField::kSamples);
    sample.add_bytes(SampleField::kRawProfile, raw_profile.data(), raw_profile.size());
  }
  return out;
}

}  // namespace ceems::exporter::profile
