#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/energy/account/idle_power.h"
#include "exporter/energy/meter/meter.h"

namespace ceems::exporter::energy {

/// What distinguishes a machine from others, as far as its idle power is concerned.
struct MachineIdentity {
  std::string id;   ///< a hash (machine.h)
  std::string cpu;  ///< model name of the CPUs
  std::size_t sockets = 0;
  std::size_t cpus = 0;  ///< online CPUs
  bool operator==(const MachineIdentity&) const = default;
};

/// What the program learned about a machine and continues with after a restart.
struct Learned {
  static constexpr std::size_t kMaxEntries = 2048;  ///< of each kind; to_json() leaves out more

  /// What one IdlePower learned. All but `bins` say of what.
  struct Idle {
    Domain domain = Domain::kPackage;
    std::optional<int> socket = {};  ///< nothing: all sockets together
    std::string device = {};         ///< name of the device's source; empty: no device
    std::string meters = {};         ///< names of the sources that measured it
    std::vector<IdlePower::Bin> bins = {};
    [[nodiscard]] bool same_place(const Idle& other) const;
  };
  std::vector<Idle> idle;
  std::map<std::string, double, std::less<>> numbers;  ///< others' finite values, by name

  /// Adds an entry, unless it has no bins.
  void add(Idle entry);
  /// The bins of an entry for the same place (`place.bins` does not matter); empty if there is
  /// none.
  [[nodiscard]] const std::vector<IdlePower::Bin>& bins_of(const Idle& place) const;
  /// Adds what `older` has and this has not: of meters and devices that were not there this time.
  void add_missing(const Learned& older);
};

/// The idle power in watts of each domain that a program begins with which continues with
/// `learned`: the sum over sockets and devices. Nothing where nothing was learned.
IdleWatts idle_watts(const Learned& learned);

/// The content of a state file (docs/energy.md), which from_json() reads. One line.
std::string to_json(const Learned& learned, const MachineIdentity& machine);

/// Reads the content of a state file. Members that it does not know are skipped. kParse: it is not
/// JSON or not of this form, of another version, of another machine, or holds a value that nothing
/// can have measured; the message says which. Accepts any bytes.
Result<Learned> from_json(std::string_view text, const MachineIdentity& machine);

}  // namespace ceems::exporter::energy
