#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// Reads <sysfs>/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband in Linux).
/// It lists InfiniBand, RoCE and iWARP adapters, and Omni-Path ones as `hfi1_N` with the same
/// files.

/// The factor from `port_rcv_data` and `port_xmit_data` to bytes: IBTA counts words of four octets
/// (PortCountersExtended). The hfi1 driver fills these two from its flit counters (eight octets)
/// and leaves unicast packets at 0, so its true bytes are twice what this factor gives. We keep
/// four, as the reference does, see docs/exporter/collectors.md.
inline constexpr std::uint64_t kInfinibandDataUnitBytes = 4;

/// One directory ports/N. A value is empty if its file is missing or malformed.
struct InfinibandPort {
  std::string number;                  ///< decimal, as in the label `port`
  std::string path;                    ///< <sysfs>/class/infiniband/<device>/ports/<number>
  std::optional<std::uint64_t> state;  ///< 0 no change ... 4 active, 5 active defer
  std::optional<std::uint64_t> physical_state;  ///< 0 no change ... 5 link up ... 7 phy test
  std::optional<std::uint64_t> rate_bytes;      ///< per second
};

struct InfinibandDevice {
  std::string name;                     ///< "mlx5_0", "hfi1_0", "rxe0"
  std::string path;                     ///< <sysfs>/class/infiniband/<name>
  std::optional<std::string> firmware;  ///< content of `fw_ver`
  std::string board_id;                 ///< empty if missing
  std::string hca_type;                 ///< empty if missing, as for all adapters but Mellanox's
  std::vector<InfinibandPort> ports;    ///< by number
  std::vector<Error> problems;          ///< what could not be read; everything else is valid
};

/// All devices by name, with the states of their ports. If part of a device or port cannot be read,
/// the others are not affected (see InfinibandDevice::problems). kNoData: the class directory does
/// not exist; kPermissionDenied.
Result<std::vector<InfinibandDevice>> read_infiniband(const std::string& sys);

/// Reads a counter of a port, with the value that its file has. `file` is relative to the directory
/// of the port, e.g. "counters/symbol_error" or "hw_counters/out_of_buffer". Nothing if the file
/// does not exist or may not be read, or if the adapter lacks the counter. kParse: any other text.
Result<std::optional<std::uint64_t>> read_infiniband_counter(const InfinibandPort& port,
                                                             std::string_view file);

/// "4: ACTIVE" is 4. kParse for other text.
Result<std::uint64_t> parse_infiniband_state(std::string_view text);

/// "100 Gb/sec (4X EDR)" is 12500000000 bytes per second, truncated to an integer. kParse for other
/// text.
Result<std::uint64_t> parse_infiniband_rate(std::string_view text);

/// An unsigned number: decimal, hexadecimal after 0x, or octal after a leading zero. Nothing for
/// "N/A (no PMA)", which the kernel prints for ports without a performance management agent. kParse
/// for other text.
Result<std::optional<std::uint64_t>> parse_infiniband_counter(std::string_view text);

}  // namespace ceems::host
