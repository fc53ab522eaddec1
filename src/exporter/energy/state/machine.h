#pragma once

#include <string>

#include "exporter/energy/state/learned.h"
#include "host/paths.h"

namespace ceems::exporter::energy {

/// The machine whose /proc is below `paths`. Its id is a hash of machine-id(5), which must not
/// leave the machine itself, and of the hostname, because diskless nodes may share the former. What
/// cannot be read is empty or 0.
MachineIdentity this_machine(const host::Paths& paths,
                             const std::string& machine_id_file = "/etc/machine-id");

}  // namespace ceems::exporter::energy
