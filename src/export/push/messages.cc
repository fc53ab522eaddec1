#include "export/push/messages.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <protozero/pbf_builder.hpp>

#include "base/utf8.h"
#include "base/version.h"
#include "export/push/finals.h"

namespace ceems::exporting {
namespace {

using protozero::pbf_builder;
using protozero::pbf_tag_type;

// Fields of prometheus' remote.proto and types.proto.
enum class WriteField : pbf_tag_type { kTimeseries = 1 };
enum class SeriesField : pbf_tag_type { kLabels = 1, kSamples = 2 };
enum class LabelField : pbf_tag_type { kName = 1, kValue = 2 };
enum class SampleField : pbf_tag_type { kValue = 1, kTimestamp = 2 };

// Fields of opentelemetry-proto: metrics_service.proto, metrics.proto, resource.proto and
// common.proto.
enum class RequestField : pbf_tag_type { kResourceMetrics = 1 };
enum class ResourceMetricsField : pbf_tag_type { kResource = 1, kScopeMetrics = 2, kSchemaUrl = 3 };
enum class ResourceField : pbf_tag_type { kAttributes = 1 };
enum class ScopeMetricsField : pbf_tag_type { kScope = 1, kMetrics = 2 };
enum class ScopeField : pbf_tag_type { kName = 1, kVersion = 2 };
enum class MetricField : pbf_tag_type { kName = 1, kUnit = 3, kGauge = 5, kSum = 7 };
enum class GaugeField : pbf_tag_type { kDataPoints = 1 };
enum class SumField : pbf_tag_type { kDataPoints = 1, kTemporality = 2, kMonotonic = 3 };
enum class PointField : pbf_tag_type { kStart = 2, kTime = 3, kDouble = 4, kAttributes = 7 };
enum class KeyValueField : pbf_tag_type { kKey = 1, kValue = 2 };
enum class AnyValueField : pbf_tag_type { kString = 1 };

constexpr int kCumulative = 2;
constexpr std::string_view kSchema = "https://opentelemetry.io/schemas/1.43.0";

using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// Without those that are empty, which mean the same as none.
void add(Labels& labels, std::string_view name, std::string_view value) {
  if (!value.empty()) {
    labels.emplace_back(name, clean_text(value));
  }
}

/// In the order of their names, without that of the series.
Labels labels_of(const ExportedUnit& unit, const Target& target) {
  Labels labels;
  add(labels, "cluster", unit.cluster);
  add(labels, "manager", unit.manager);
  add(labels, "partition", unit.tags.first("partition", "queue"));
  add(labels, "project", target.with_project ? unit.project : "");
  add(labels, "state", unit.state);
  add(labels, "user", target.with_user ? unit.user : "");
  add(labels, "uuid", unit.uuid);
  return labels;
}

template <typename Parent, typename Field>
void add_attribute(Parent& parent, Field field, std::string_view name, const std::string& value) {
  pbf_builder<KeyValueField> attribute(parent, field);
  attribute.add_string(KeyValueField::kKey, name.data(), name.size());
  pbf_builder<AnyValueField> text(attribute, KeyValueField::kValue);
  text.add_string(AnyValueField::kString, value);
}

constexpr std::uint64_t nanoseconds(std::int64_t ms) {
  constexpr std::uint64_t kPerMs = 1'000'000;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(ms, 0)) * kPerMs;
}

template <typename Parent, typename Field>
void add_point(Parent& parent, Field field, const Final& final, const ExportedUnit& unit) {
  pbf_builder<PointField> point(parent, field);
  if (final.sum) {
    point.add_fixed64(PointField::kStart, nanoseconds(unit.started_ms));
  }
  point.add_fixed64(PointField::kTime, nanoseconds(unit.ended_ms));
  point.add_double(PointField::kDouble, final.value(unit).value_or(0) * final.scale);
  if (!final.hardware.empty()) {
    const std::string hardware(final.hardware);
    add_attribute(point, PointField::kAttributes, "hw.id", hardware);
    add_attribute(point, PointField::kAttributes, "hw.type", hardware);
  }
}

void add_metric(pbf_builder<ScopeMetricsField>& scope,
                std::span<const Final> some,
                const ExportedUnit& unit) {
  if (std::ranges::none_of(some, [&](const Final& one) { return one.value(unit).has_value(); })) {
    return;
  }
  const Final& first = some.front();
  pbf_builder<MetricField> metric(scope, ScopeMetricsField::kMetrics);
  metric.add_string(MetricField::kName, first.metric.data(), first.metric.size());
  metric.add_string(MetricField::kUnit, first.unit.data(), first.unit.size());
  if (!first.sum) {
    pbf_builder<GaugeField> gauge(metric, MetricField::kGauge);
    add_point(gauge, GaugeField::kDataPoints, first, unit);
    return;
  }
  pbf_builder<SumField> sum(metric, MetricField::kSum);
  for (const Final& final : some) {
    if (final.value(unit)) {
      add_point(sum, SumField::kDataPoints, final, unit);
    }
  }
  sum.add_enum(SumField::kTemporality, kCumulative);
  sum.add_bool(SumField::kMonotonic, true);
}

void add_resource(pbf_builder<RequestField>& request,
                  const ExportedUnit& unit,
                  const Target& target) {
  pbf_builder<ResourceMetricsField> metrics(request, RequestField::kResourceMetrics);
  {
    pbf_builder<ResourceField> resource(metrics, ResourceMetricsField::kResource);
    add_attribute(resource, ResourceField::kAttributes, "service.name", "ceems");
    for (const auto& [name, value] : labels_of(unit, target)) {
      const std::string full = name == "cluster" ? "ceems.cluster"
                               : name == "uuid"  ? "ceems.unit.id"
                                                 : "ceems.unit." + std::string(name);
      add_attribute(resource, ResourceField::kAttributes, full, value);
    }
  }
  {
    pbf_builder<ScopeMetricsField> scope(metrics, ResourceMetricsField::kScopeMetrics);
    {
      pbf_builder<ScopeField> name(scope, ScopeMetricsField::kScope);
      name.add_string(ScopeField::kName, "ceems_api_server");
      name.add_string(ScopeField::kVersion, std::string(version().version));
    }
    const std::span<const Final> all = finals();
    for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
      for (end = begin; end < all.size() && all[end].metric == all[begin].metric; ++end) {
      }
      add_metric(scope, all.subspan(begin, end - begin), unit);
    }
  }
  metrics.add_string(ResourceMetricsField::kSchemaUrl, kSchema.data(), kSchema.size());
}

}  // namespace

std::string write_request(std::span<const EndedUnit> units, const Target& target) {
  std::string out;
  pbf_builder<WriteField> request(out);
  for (const auto& [place, unit] : units) {
    const Labels labels = labels_of(unit, target);
    for (const Final& final : finals()) {
      const auto value = final.value(unit);
      if (!value) {
        continue;
      }
      pbf_builder<SeriesField> series(request, WriteField::kTimeseries);
      const auto add_label = [&series](std::string_view name, std::string_view text) {
        pbf_builder<LabelField> label(series, SeriesField::kLabels);
        label.add_string(LabelField::kName, name.data(), name.size());
        label.add_string(LabelField::kValue, text.data(), text.size());
      };
      add_label("__name__", final.series);
      for (const auto& [name, text] : labels) {
        add_label(name, text);
      }
      pbf_builder<SampleField> sample(series, SeriesField::kSamples);
      sample.add_double(SampleField::kValue, *value);
      sample.add_int64(SampleField::kTimestamp, unit.ended_ms);
    }
  }
  return out;
}

std::string metrics_request(std::span<const EndedUnit> units, const Target& target) {
  std::string out;
  pbf_builder<RequestField> request(out);
  for (const auto& [place, unit] : units) {
    add_resource(request, unit, target);
  }
  return out;
}

std::string snappy_literals(std::string_view text) {
  constexpr std::size_t kMaxLiteral = 65'536;
  constexpr unsigned kTwoBytes = 61U << 2U;  // a literal whose length - 1 follows in two bytes
  constexpr unsigned kByte = 0xFF;
  constexpr unsigned kMore = 0x80;
  constexpr unsigned kBits = 7;
  std::string out;
  const auto byte = [&out](std::size_t value) { out += static_cast<char>(value & kByte); };
  std::size_t length = text.size();
  for (; length >= kMore; length >>= kBits) {
    byte(length | kMore);
  }
  byte(length);
  for (; !text.empty(); text.remove_prefix(std::min(kMaxLiteral, text.size()))) {
    const std::string_view part = text.substr(0, kMaxLiteral);
    byte(kTwoBytes);
    byte(part.size() - 1);
    byte((part.size() - 1) >> 8U);
    out += part;
  }
  return out;
}

}  // namespace ceems::exporting
