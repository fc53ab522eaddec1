#include "gate/time_fields.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/rfc3339.h"
#include "promql/text/literal.h"

namespace ceems::gate {
namespace {

/// The default of Prometheus, also for those that ask for 0. A server may have another, so the
/// request says it.
constexpr std::int64_t kLookbackMs = 300'000;
constexpr double kMsPerSecond = 1000;

std::optional<std::int64_t> ms_of_seconds(std::string_view text) {
  const auto seconds = parse_double(text);
  if (!seconds || !std::isfinite(*seconds) ||
      std::abs(*seconds) * kMsPerSecond > static_cast<double>(kFarTime)) {
    return std::nullopt;
  }
  return std::llround(*seconds * kMsPerSecond);
}

std::optional<std::int64_t> time_of(std::string_view text) {
  const auto ms = ms_of_seconds(text);
  return ms ? ms : parse_rfc3339_ms(text);
}

std::optional<std::int64_t> duration_of(std::string_view text) {
  const auto ms = ms_of_seconds(text);
  return ms ? ms : promql::parse_duration_ms(text);
}

const std::string* find(const Fields& fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
  return found == fields.end() ? nullptr : &found->second;
}

void write(Fields& fields, std::string_view name, std::int64_t ms) {
  std::string text = fmt::format("{:.3f}", static_cast<double>(ms) / kMsPerSecond);
  const auto found = std::ranges::find(fields, name, &Fields::value_type::first);
  if (found != fields.end()) {
    found->second = std::move(text);
  } else {
    fields.emplace_back(name, std::move(text));
  }
}

}  // namespace

Checked<AskedTimes> read_times(const Fields& fields, TimeForm form, std::int64_t now_ms) {
  std::optional<Refusal> refusal;
  const auto read = [&](std::string_view name, const auto& parse,
                        std::optional<std::int64_t> otherwise) -> std::int64_t {
    const std::string* const text = find(fields, name);
    const auto value = text == nullptr || text->empty() ? otherwise : parse(*text);
    if (!value && !refusal) {
      refusal = bad_data(fmt::format("invalid parameter \"{}\": cannot parse it", name), "times");
    }
    return value.value_or(0);
  };
  AskedTimes asked;
  Evaluation& times = asked.times;
  if (form == TimeForm::kInstant) {
    times.start_ms = read("time", time_of, now_ms);
    times.end_ms = times.start_ms;
  } else {
    const bool bounds = form == TimeForm::kBounds;
    times.start_ms = read("start", time_of, bounds ? std::optional(-kFarTime) : std::nullopt);
    times.end_ms = read("end", time_of, bounds ? std::optional(kFarTime) : std::nullopt);
  }
  if (form == TimeForm::kRange) {
    times.step_ms = read("step", duration_of, std::nullopt);
  }
  if (form != TimeForm::kBounds) {
    asked.lookback_ms = read("lookback_delta", duration_of, kLookbackMs);
    asked.lookback_ms = asked.lookback_ms == 0 ? kLookbackMs : asked.lookback_ms;
    asked.longest_lookback_ms = std::max(asked.lookback_ms, kLookbackMs);
  }
  if (form == TimeForm::kRange && times.step_ms <= kFarTime) {
    // VictoriaMetrics looks back for a step, and moves start and end to multiples of it; Mimir and
    // Thanos may move them, too.
    asked.moved_ms = std::max<std::int64_t>(times.step_ms, 0);
    asked.longest_lookback_ms =
        std::min(std::max(asked.longest_lookback_ms, asked.moved_ms) + asked.moved_ms, kFarTime);
  }
  if (!refusal && (times.step_ms <= 0 || times.step_ms > kFarTime || asked.lookback_ms < 0 ||
                   asked.lookback_ms > kFarTime || times.end_ms < times.start_ms)) {
    refusal = bad_data("invalid parameters \"start\", \"end\", \"step\"", "times");
  }
  if (refusal) {
    return std::unexpected(std::move(*refusal));
  }
  return asked;
}

void write_times(Fields& fields, TimeForm form, const AskedTimes& asked) {
  const Evaluation& times = asked.times;
  if (form != TimeForm::kBounds) {
    write(fields, "lookback_delta", asked.lookback_ms);
  }
  if (form == TimeForm::kInstant) {
    write(fields, "time", times.start_ms);
    return;
  }
  if (times.start_ms > -kFarTime) {
    write(fields, "start", times.start_ms);
  }
  if (times.end_ms < kFarTime) {
    write(fields, "end", times.end_ms);
  }
}

}  // namespace ceems::gate
