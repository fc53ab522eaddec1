// Label values of arbitrary bytes give a page of valid UTF-8 with one line per series.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "base/strings.h"
#include "base/utf8.h"
#include "metrics/sink.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ceems::metrics::Desc desc("ceems_fuzz_total", "Fuzz.",
                                         ceems::metrics::Type::kCounter, {"b", "a"});
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  double value = 0;
  std::memcpy(&value, data, std::min(size, sizeof(value)));
  static ceems::metrics::Sink sink;
  sink.clear();
  std::uint64_t added = 0;
  while (!rest.empty()) {
    const std::string_view first = ceems::take_until(rest, '\n');
    sink.add(desc, value, {first, ceems::take_until(rest, '\n')});
    ++added;
  }
  std::string page;
  sink.render(ceems::metrics::Exposition::kText, page);
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(page, '\n'));
  const std::uint64_t kept = sink.samples();
  if (!ceems::is_utf8(page) || kept + sink.dropped() != added ||
      lines != (kept == 0 ? 0 : kept + 2)) {
    std::abort();
  }
  page.clear();
  sink.render(ceems::metrics::Exposition::kOpenMetrics, page);
  if (!page.ends_with("# EOF\n")) {
    std::abort();
  }
  return 0;
}
