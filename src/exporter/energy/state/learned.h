#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/energy/account/idle_power.h"
#include "exporter/energy/account/meter_lag.h"
#include "exporter/energy/meter/meter.h"
#include "host/paths.h"

namespace ceems::exporter::energy {

/// What distinguishes a machine from others, as far as its idle power is concerned.
struct MachineIdentity {
  std::string id;   ///< a hash (this_machine())
  std::string cpu;  ///< model name of the CPUs
  std::size_t sockets = 0;
  std::size_t cpus = 0;  ///< online CPUs
  bool operator==(const MachineIdentity&) const = default;
};

/// What the program learned about a machine and continues with after a restart.
struct Learned {
  static constexpr std::size_t kMaxEntries = 2048;  ///< of each kind; to_json() leaves out more

  /// Watts per busy core of a unit.
  struct UnitCore {
    std::string unit;  ///< manager, hostname and uuid
    PowerEstimate core;
    bool operator==(const UnitCore&) const = default;
  };
  static constexpr std::size_t kMaxUnits = 1024;  ///< of all entries together
  static constexpr std::size_t kMaxUnitName = 256;

  /// What one IdlePower learned, and the UnitWatts beside it. The first four say of what.
  struct Idle {
    Domain domain = Domain::kPackage;
    std::optional<int> socket = {};  ///< nothing: all sockets together
    std::string device = {};         ///< name of the device's source; empty: no device
    std::string meters = {};         ///< names of the sources that measured it
    std::vector<IdlePower::Bin> bins = {};
    // What UnitWatts learned.
    std::optional<PowerEstimate> estimate = {};  ///< of the idle power
    std::optional<PowerEstimate> core = {};      ///< watts per busy core on average
    std::optional<PowerEstimate> system = {};    ///< the same of the system
    std::optional<PowerEstimate> losses = {};    ///< UnitWatts::losses()
    std::vector<UnitCore> units = {};
    [[nodiscard]] bool same_place(const Idle& other) const;
  };
  std::vector<Idle> idle;

  /// How late a wall meter is.
  struct Lag {
    std::string source;
    std::string known = {};  ///< names of what was known beside it, which its line belongs to
    MeterLag::State state;
  };
  std::vector<Lag> lags;
  std::map<std::string, double, std::less<>> numbers;  ///< others' finite values, by name

  /// Adds an entry, unless it has neither bins nor an estimate.
  void add(Idle entry);
  /// The entry for the same place (`place.bins` does not matter), or null.
  [[nodiscard]] const Idle* find(const Idle& place) const;
  /// The bins of an entry for the same place (`place.bins` does not matter); empty if there is
  /// none.
  [[nodiscard]] const std::vector<IdlePower::Bin>& bins_of(const Idle& place) const;
  /// The lag of a source beside these known domains, or null.
  [[nodiscard]] const MeterLag::State* lag_of(std::string_view source,
                                              std::string_view known) const;
  /// The same whatever was known. Its line does not hold then.
  [[nodiscard]] const MeterLag::State* lag_of(std::string_view source) const;
  /// Adds an entry or replaces the one for the same place.
  void put(Idle entry);
  void put(Lag entry);
  /// Adds what `older` has and this has not: of meters and devices that were not there this time.
  void add_missing(const Learned& older);
};

using IdleEstimates = std::array<std::optional<PowerEstimate>, kDomainCount>;

/// The idle power of each domain with which a program that continues with `learned` begins: the sum
/// over sockets and devices. Nothing for domains without learned values.
IdleEstimates idle_estimates(const Learned& learned, const AssumedIdle& assumed = {});

/// The content of a state file (docs/energy.md), which from_json() reads. One line.
std::string to_json(const Learned& learned, const MachineIdentity& machine);

/// Reads the content of a state file. Members that it does not know are skipped. kParse: it is not
/// JSON or not of this form, of another version, of another machine, or holds a value that nothing
/// can have measured; the message says which. Accepts any bytes.
Result<Learned> from_json(std::string_view text, const MachineIdentity& machine);

/// The machine whose /proc is below `paths`. Its id is a hash of machine-id(5), which must not
/// leave the machine itself, and of the hostname, because diskless nodes may share the former. What
/// cannot be read is empty or 0.
MachineIdentity this_machine(const host::Paths& paths,
                             const std::string& machine_id_file = "/etc/machine-id");

}  // namespace ceems::exporter::energy
