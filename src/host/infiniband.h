#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// Reader of <sysfs>/class/infiniband (Documentation/ABI/stable/sysfs-class-infiniband in Linux).
/// InfiniBand, RoCE and iWARP adapters are there, and Omni-Path ones as `hfi1_N` with the same
/// files.

/// Factor from `port_rcv_data` and `port_xmit_data` to bytes: IBTA counts words of four octets
/// (PortCountersExtended). The hfi1 driver fills these two from its flit counters (eight octets)
/// and leaves unicast packets at 0; its bytes are twice what this factor gives. Kept at four as in
/// the reference, see docs/exporter/collectors.md.
inline constexpr std::uint64_t kInfinibandDataUnitBytes = 4;

/// One directory ports/N. A value is absent where its file is missing or malformed.
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
  std::optional<std::string> firmware;  ///< of `fw_ver`
  std::string board_id;                 ///< empty where absent
  std::string hca_type;                 ///< empty where absent (all but Mellanox)
  std::vector<InfinibandPort> ports;    ///< by number
  std::vector<Error> problems;          ///< what could not be read of it; the rest is valid
};

/// All devices in name order with the states of their ports. What cannot be read of one device or
/// port takes nothing from the others (InfinibandDevice::problems). kNoData: the class directory is
/// absent; kPermissionDenied.
Result<std::vector<InfinibandDevice>> read_infiniband(const std::string& sys);

/// A counter of a port by its file relative to the port's directory, e.g. "counters/symbol_error"
/// or "hw_counters/out_of_buffer", as the file has it. Nothing where the file is absent or may not
/// be read, and where the adapter does not have the counter. kParse: any other text.
Result<std::optional<std::uint64_t>> read_infiniband_counter(const InfinibandPort& port,
                                                             std::string_view file);

/// "4: ACTIVE" is 4. kParse.
Result<std::uint64_t> parse_infiniband_state(std::string_view text);

/// "100 Gb/sec (4X EDR)" is 12500000000 bytes per second, cut to an integer. kParse.
Result<std::uint64_t> parse_infiniband_rate(std::string_view text);

/// An unsigned number, decimal, 0x-hexadecimal or octal behind a leading zero; nothing for "N/A (no
/// PMA)", which the kernel prints for ports without a performance management agent. kParse.
Result<std::optional<std::uint64_t>> parse_infiniband_counter(std::string_view text);

}  // namespace ceems::host
