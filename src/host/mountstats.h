#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ceems::host {

/// /proc/self/mountstats: NFS mounts of this mount namespace, in the versions 1.0 and 1.1 of the
/// statistics (nfs_show_stats() and rpc_clnt_show_stats() in Linux).

/// The columns of an operation. Times are sums over operations.
enum class NfsColumn : std::size_t {
  kOperations,
  kTransmissions,  ///< of requests, so at least one for each operation that was sent
  kTimeouts,       ///< "major timeouts": the server did not answer for the whole time of a request
  kSentBytes,
  kReceivedBytes,
  kQueueMilliseconds,     ///< before the request was sent
  kResponseMilliseconds,  ///< from the request to its answer
  kTotalMilliseconds,     ///< from the start to the end of the operation
};
inline constexpr std::size_t kNfsColumns = 8;

struct NfsOperation {
  std::string_view name;  ///< "READ", "GETATTR"; points into the text
  std::array<std::uint64_t, kNfsColumns> columns{};
  std::optional<std::uint64_t> errors;  ///< listed since Linux 5.3
};

/// Bytes that programs and the page cache read and wrote.
struct NfsBytes {
  std::uint64_t read = 0;  ///< by read() and its like
  std::uint64_t written = 0;
  std::uint64_t direct_read = 0;  ///< with O_DIRECT
  std::uint64_t direct_written = 0;
  std::uint64_t server_read = 0;  ///< from the server
  std::uint64_t server_written = 0;
};

struct NfsMount {
  std::string_view source;       ///< "server:/export"; blanks and backslashes are octal (\040)
  std::string_view mount_point;  ///< in the same form
  std::optional<NfsBytes> bytes;
  std::vector<NfsOperation> operations;
};

struct NfsMounts {
  std::vector<NfsMount> mounts;
  std::size_t left_out = 0;  ///< more than `max_mounts`
};

/// Parses the text. Views point into it. At most `max_mounts` are returned, the first ones. kParse,
/// with the first line that is malformed or cut: all others are in `result`.
Result<> parse_mountstats(std::string_view text, std::size_t max_mounts, NfsMounts& result);

}  // namespace ceems::host
