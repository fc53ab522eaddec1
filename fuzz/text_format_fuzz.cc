#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "metrics/sink.h"
#include "metrics/text_format.h"

/// What is accepted can be written again, and is the same when read back.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace metrics = ceems::metrics;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto samples = metrics::parse_text_format(text);
  if (!samples) {
    return 0;
  }
  metrics::Sink sink;
  for (const metrics::TextSample& sample : *samples) {
    const std::vector<std::string_view> labels(sample.labels.begin(), sample.labels.end());
    sink.add(sample.desc, sample.value, labels);
  }
  std::string page;
  sink.render(metrics::Exposition::kText, page);
  const auto again = metrics::parse_text_format(page);
  CEEMS_CHECK(again.has_value());
  CEEMS_CHECK(again->size() == sink.samples());
  return 0;
}
