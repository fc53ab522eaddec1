// Responses of Prometheus that pass through the label filter, in one piece and byte by byte. Both
// must give the same result.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "lb/answer_filter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using ceems::lb::AnswerKind;
  using ceems::lb::LabelFilter;
  if (size == 0) {
    return 0;
  }
  const auto kind = static_cast<AnswerKind>(data[0] % 4);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  LabelFilter whole(kind, {"instance", "job"});
  std::string expected;
  const bool good = whole.feed(text, expected) && whole.finish(expected);
  LabelFilter pieces(kind, {"instance", "job"});
  std::string out;
  bool also_good = true;
  for (const char& byte : text) {
    also_good = also_good && pieces.feed(std::string_view(&byte, 1), out).has_value();
  }
  also_good = also_good && pieces.finish(out).has_value();
  CEEMS_CHECK(good == also_good);
  CEEMS_CHECK(!good || out == expected);
  return 0;
}
