// Lustre's stats and job_stats, and the names of its directories.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "host/lustre.h"

namespace {

void check_inside(std::string_view part, std::string_view text) {
  if (!part.empty() &&
      (part.data() < text.data() || part.data() + part.size() > text.data() + text.size())) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<ceems::host::LustreCount> counts;
  static_cast<void>(ceems::host::parse_lustre_stats(text, counts).has_value());
  for (const ceems::host::LustreCount& count : counts) {
    check_inside(count.name, text);
    check_inside(count.unit, text);
  }
  const auto parsed =
      ceems::host::parse_lustre_job_stats(text, [text](const ceems::host::LustreJob& job) {
        check_inside(job.id, text);
        if (ceems::host::is_lustre_job_id(job.id) &&
            job.id.find_first_of("\"\\\n\t ") != std::string_view::npos) {
          std::abort();
        }
        for (const ceems::host::LustreCount& count : job.counts) {
          if (count.name.empty()) {
            std::abort();
          }
          check_inside(count.name, text);
        }
      });
  static_cast<void>(parsed.has_value());
  if (const auto name = ceems::host::lustre_client_filesystem(text); name && name->empty()) {
    std::abort();
  }
  for (const auto& target :
       {ceems::host::lustre_target(text), ceems::host::lustre_client_target(text)}) {
    if (target && target->filesystem.empty()) {
      std::abort();
    }
  }
  return 0;
}
