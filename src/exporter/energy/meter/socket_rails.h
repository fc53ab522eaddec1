#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "exporter/energy/meter/meter.h"
#include "exporter/energy/meter/source_gate.h"
#include "host/hwmon.h"

namespace ceems::exporter::energy {

/// What an ACPI power meter of an NVIDIA Grace, GH200 or GB200 measures. Its power1_oem_info says
/// it, as "CPU Power Socket 0" (NVIDIA Grace Performance Tuning Guide, "Power Telemetry").
enum class RailKind : std::size_t {
  kCpu,     ///< cores and cache
  kSysIo,   ///< links, PCIe and the rest of the CPU die
  kGrace,   ///< the above, the LPDDR5X memory, and the losses of their regulators
  kModule,  ///< Grace and the GPUs of the module
};
inline constexpr std::size_t kRailKinds = 4;

struct RailName {
  RailKind kind = RailKind::kModule;
  int socket = 0;
  bool operator==(const RailName&) const = default;
};

/// Nothing for other texts.
std::optional<RailName> parse_rail_name(std::string_view oem_info);

/// True for "ANYTHING Socket N": the meter of a part of the node, whether or not it is known which.
bool is_part_of_socket(std::string_view oem_info);

/// The hardware that a rail's energy contains, as bits. Sources of one socket that all count at the
/// same time have no bit in common.
using Contents = unsigned;
inline constexpr Contents kHasCores = 1;
inline constexpr Contents kHasIo = 2;
inline constexpr Contents kHasMemory = 4;
inline constexpr Contents kHasGpus = 8;
Contents contents_of(RailKind kind);

/// A source of energy made of the rails of a socket: the sum of `plus` without the sum of `minus`.
struct RailSource {
  Domain domain = Domain::kPackage;
  std::string_view name;  ///< "cpu": the source is called "acpi-cpu-0"
  std::vector<RailKind> plus;
  std::vector<RailKind> minus = {};

  /// What is in `plus` and not in `minus`.
  [[nodiscard]] Contents contents() const;
};

/// The sources of a socket with these rails. No two contain the same hardware (checked).
///
/// | Rails                 | package     | dram                |
/// |-----------------------|-------------|---------------------|
/// | Grace, CPU and SysIO  | CPU + SysIO | Grace - CPU - SysIO |
/// | Grace and CPU         | CPU         | Grace - CPU         |
/// | Grace                 | Grace       |                     |
/// | no Grace              | CPU + SysIO |                     |
std::vector<RailSource> plan_sources(const std::vector<RailKind>& rails);

/// The rails of all sockets. The first source of a socket that is asked at a time reads all of its
/// rails, so that the differences belong together. Each rail has a gate of its own, which knows
/// what that of the source expects, and a line through the load of the socket, whose range it may
/// not leave at once. If one rail of a socket has no value, or has not been believed for kHold,
/// none of that socket counts: otherwise what it measures would be taken for something
/// else; likewise one that has shown the same since the start although the load moved. While one
/// stands still, its readings are `assumed`.
class SocketRails {
 public:
  void add(RailName name, std::unique_ptr<EnergyMeter> meter);
  [[nodiscard]] bool empty() const { return sockets_.empty(); }
  /// How long the last power that was believed holds.
  static constexpr auto kHold = std::chrono::seconds(15);

  /// The sources of all sockets, and one of the node, "acpi-module", if each has a module rail.
  /// They keep `rails` alive.
  static Meters meters(const std::shared_ptr<SocketRails>& rails);

  /// Joules of the GPUs of a module since the start: module - Grace. `place` counts the sockets in
  /// their order. Nothing without both rails. Safe for concurrent use.
  [[nodiscard]] std::optional<double> gpu_joules(std::size_t place) const;
  /// Joules of Grace since the start, likewise.
  [[nodiscard]] std::optional<double> grace_joules(std::size_t place) const;

 private:
  friend class RailMeter;

  struct Rail {
    RailKind kind = RailKind::kModule;
    std::unique_ptr<EnergyMeter> meter;
    std::unique_ptr<SourceGate> gate = std::make_unique<SourceGate>("");
    PowerLine line = {};  // through the load of the socket and this power
    double joules = 0;    // since the start
    double pending = 0;   // read while another rail of the socket had no value
  };
  struct Socket {
    std::vector<Rail> rails;
    std::optional<Error> error;
    Clock::SteadyTime fresh{};
    bool counted = false;
    bool still = false;  // a rail shows the same although the load is another ...
    bool never = false;  // ... and has done so since the start
    std::optional<Clock::SteadyTime> read = {};
  };

  static void refresh(Socket& socket, const MeterContext& context);
  static Result<Reading> read(Rail& rail, const MeterContext& context, double seconds);
  [[nodiscard]] static std::optional<double> joules_of(const Socket& socket, RailKind kind);
  [[nodiscard]] const Socket* socket_at(std::size_t place) const CEEMS_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<int, Socket> sockets_;  // by number; the set of rails does not change after meters()
};

}  // namespace ceems::exporter::energy
