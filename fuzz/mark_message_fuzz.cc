#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "base/clock.h"
#include "exporter/marks/message.h"
#include "exporter/marks/unit_marks.h"

/// Each line is a message. The second byte of a line that begins with '#' is a pause.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace marks = ceems::exporter::marks;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  CEEMS_CHECK(!marks::parse_cgroup_path(text, "cpuacct").value_or("/").empty());
  CEEMS_CHECK(!marks::parse_cgroup_path(text, "").value_or("/").empty());
  ceems::Clock::SteadyTime now{std::chrono::seconds(1000)};
  marks::UnitMarks unit(now);
  marks::Stream attached{.attached = true};
  double joules = 0;
  bool other = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
    if (line.size() > 1 && line.front() == '#') {
      const double seconds = static_cast<unsigned char>(line[1]) / 100.0;
      now += std::chrono::milliseconds(10 * static_cast<unsigned char>(line[1]));
      unit.charge({seconds, 2 * seconds, 0, 1}, seconds, now);
      joules += 3 * seconds + 1;
    } else if (line == "close") {
      unit.close(attached, now);
    } else if (line == "over") {
      unit.end_all(now);
    } else if (const auto message = marks::parse_message(line)) {
      CEEMS_CHECK(message->name.size() <= marks::kMaxName && std::isfinite(message->value));
      unit.take(*message, (other = !other) ? unit.detached : attached, now);
    }
  }
  double sum = unit.unmarked_joules();
  for (const auto& region : unit.regions()) {
    sum += region.all_self_joules();
  }
  CEEMS_CHECK(unit.regions().size() + unit.results().size() + unit.foms().size() <=
              marks::UnitMarks::kMaxNames);
  CEEMS_CHECK(std::abs(sum - joules) <= 1e-6 * (joules + 1));
  return 0;
}
