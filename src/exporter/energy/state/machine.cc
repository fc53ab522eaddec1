#include "exporter/energy/state/machine.h"

#include <sys/utsname.h>

#include <iterator>

#include <fmt/format.h>

#include "base/strings.h"
#include "crypto/digest.h"
#include "host/proc.h"
#include "host/read_file.h"

namespace ceems::exporter::energy {

MachineIdentity this_machine(const host::Paths& paths, const std::string& machine_id_file) {
  constexpr std::size_t kIdBytes = 16;
  MachineIdentity machine;
  const auto id = host::read_file(machine_id_file, 256);
  utsname system{};
  ::uname(&system);
  const std::string hash =
      crypto::sha256(fmt::format("ceems energy state\n{}\n{}", id ? trim(*id) : "",
                                 static_cast<const char*>(system.nodename)));
  for (const char byte : std::string_view(hash).substr(0, kIdBytes)) {
    fmt::format_to(std::back_inserter(machine.id), "{:02x}", static_cast<unsigned char>(byte));
  }
  const auto text = host::read_file((paths.proc / "cpuinfo").string());
  const auto cpus = text ? host::parse_cpuinfo(*text) : fail(text.error());
  if (cpus) {
    machine.cpu = cpus->model_name;
    machine.sockets = cpus->sockets;
    machine.cpus = cpus->processors;
  }
  return machine;
}

}  // namespace ceems::exporter::energy
