#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace ceems::exporter::hsmp {

/// The words of an answer, as many as the message has.
using Words = std::array<std::uint32_t, 8>;

/// AMD's Host System Management Port: the processor's management unit, which each socket has. The
/// messages follow the kernel's header asm/amd_hsmp.h (Documentation/arch/x86/amd_hsmp.rst in
/// Linux).
class Port {
 public:
  virtual ~Port() = default;
  /// Sends a message without arguments to the unit of a socket and returns `words` words.
  /// kNotFound: no such socket; kInvalidArgument: the unit does not know the message; kUnavailable
  /// otherwise.
  virtual Result<Words> ask(std::uint16_t socket, std::uint32_t message, std::uint16_t words) = 0;
};

/// Opens a device file for reading; open_privileged() in the program.
using OpenDevice = std::function<Result<UniqueFd>(const char* path)>;

/// The kernel's device (module amd_hsmp). It is opened for reading; the kernel then permits only
/// messages that change nothing.
Result<std::unique_ptr<Port>> open_hsmp(const char* path, const OpenDevice& open);

/// What the management unit of a socket reports. Unsupported values are absent.
struct Socket {
  std::uint16_t number = 0;
  std::optional<double> power_watts = {};  ///< average of the package
  std::optional<double> power_cap_watts = {};
  std::optional<double> power_cap_max_watts = {};
  std::optional<double> c0_percent = {};  ///< average time of its cores in C0
  std::optional<double> ddr_max_gbps = {};
  std::optional<double> ddr_utilized_gbps = {};
  std::optional<double> fclk_mhz = {};        ///< of the fabric
  std::optional<double> mclk_mhz = {};        ///< of the memory
  std::optional<double> cclk_limit_mhz = {};  ///< highest permitted clock of the cores

  bool operator==(const Socket&) const = default;
};

/// Reads all sockets. Opens the device if that was not possible before. Used by one thread at a
/// time.
class Reader {
 public:
  using Open = std::function<Result<std::unique_ptr<Port>>()>;

  explicit Reader(Open open) : open_(std::move(open)) {}

  /// Opens the device unless it is open.
  Result<> open();
  /// Errors: no device, or no socket reports its power.
  Result<std::vector<Socket>> read(const std::stop_token& stop);

 private:
  std::optional<Words> ask(std::uint16_t socket, std::uint32_t message, std::uint16_t words);
  void read_others(Socket& socket);

  Open open_;
  std::unique_ptr<Port> port_;
  /// Messages that the unit of a socket does not know.
  std::set<std::pair<std::uint16_t, std::uint32_t>> unknown_;
};

}  // namespace ceems::exporter::hsmp
