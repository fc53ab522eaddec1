// State files of energy: never a crash, and what is accepted is plausible and survives a round
// trip.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "exporter/energy/state/learned.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace energy = ceems::exporter::energy;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const energy::MachineIdentity machine{.id = "0123abcd", .cpu = "CPU", .sockets = 2, .cpus = 128};
  const auto learned = energy::from_json(text, machine);
  if (!learned) {
    if (learned.error().message.empty()) {
      std::abort();
    }
    return 0;
  }
  for (const auto& entry : learned->idle) {
    energy::IdlePower idle;
    idle.restore(entry.bins);
    if (!(idle.watts().value_or(-1) >= 0)) {
      std::abort();
    }
  }
  for (const auto& [name, value] : learned->numbers) {
    if (!std::isfinite(value)) {
      std::abort();
    }
  }
  const std::string written = energy::to_json(*learned, machine);
  const auto again = energy::from_json(written, machine);
  if (!again || energy::to_json(*again, machine) != written) {
    std::abort();
  }
  return 0;
}
