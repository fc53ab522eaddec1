// Query strings of requests: they never crash the parser, and the window is always valid.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/request/params.h"
#include "api/request/row_filter.h"
#include "base/time/time_zone.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::int64_t kNow = 1'767'225'600'000;
  constexpr std::int64_t kWeek = 604'800'000;
  const auto params =
      ceems::api::parse_params(std::string_view(reinterpret_cast<const char*>(data), size));
  for (const auto* list : {&params.clusters, &params.projects, &params.users, &params.uuids}) {
    for (const auto& value : *list) {
      if (value.empty()) {
        std::abort();
      }
    }
  }
  if (const auto window = ceems::api::parse_window(params, kNow, kWeek);
      window && window->to_ms - window->from_ms > kWeek) {
    std::abort();
  }
  if (const auto window = ceems::api::parse_rounded_window(params, kNow, 0);
      window && (window->from_ms % 900'000 != 0 || window->to_ms % 900'000 != 0)) {
    std::abort();
  }
  static_cast<void>(ceems::api::select_fields(ceems::store::unit_fields(), params.fields));
  for (const auto fields : {ceems::store::unit_fields(), ceems::store::usage_fields()}) {
    if (const auto filter = ceems::api::RowFilter::create(params, fields); filter) {
      static_cast<void>(filter->matches([](std::string_view field) { return field; }));
    }
  }
  if (const auto zone = ceems::TimeZone::find(params.time_zone); zone) {
    static_cast<void>(zone->local_with_offset(kNow));
  }
  return 0;
}
