#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/json_cutter.h"
#include "exporter/lsf/allocations.h"
#include "ingest/manager/lsf/job.h"

namespace {

using ceems::Result;

/// Parses each record. The result depends on everything that was cut out.
std::size_t read_bjobs(std::string_view text, std::size_t part_size) {
  const ceems::ingest::lsf::Times times{.zone = {}, .now_ms = 1'767'229'200'000};
  std::size_t sum = 0;
  ceems::JsonCutter cutter({"RECORDS"}, [&](const ceems::JsonCutter::Element& element) -> Result<> {
    const std::string_view key = element.key;
    const std::string_view json = element.json;
    sum = sum * 31 + key.size() + json.size() + 1;
    const auto record = ceems::ingest::lsf::parse_running(json, times);
    if (record && record->has_value()) {
      const auto& job = (*record)->job;
      CEEMS_CHECK(!job.id.empty() && job.cpus >= 0 && job.gpus >= 0 && job.memory_bytes >= 0);
      CEEMS_CHECK(!(*record)->holds || job.start_ms != 0);
    }
    return {};
  });
  bool good = true;
  while (good && !text.empty()) {
    const std::string_view part = text.substr(0, part_size);
    text.remove_prefix(part.size());
    good = cutter.add(part).has_value();
  }
  return good && cutter.finish() ? sum : 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CEEMS_CHECK(read_bjobs(text, 7) == read_bjobs(text, size + 1));
  if (const auto map = ceems::exporter::lsf::parse_bjobs(text, "n1.example.org")) {
    for (const auto& [id, allocation] : *map) {
      CEEMS_CHECK(!id.empty() && allocation.slots <= (1U << 20U));
    }
  }
  return 0;
}
