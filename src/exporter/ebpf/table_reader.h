#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.h"
#include "exporter/ebpf/bpf_library.h"
#include "exporter/ebpf/tables.h"

namespace ceems::exporter::ebpf {

/// Reads tables with a value per CPU, many rows with one system call.
class TableReader {
 public:
  explicit TableReader(unsigned cpus) : cpus_(cpus) {}

  /// Appends the rows of the table with this descriptor, summed over the CPUs. kInternal: the
  /// kernel refuses. Rows that are added or deleted meanwhile may be missing or appear twice: the
  /// caller keeps the largest.
  template <class Key, class Value>
  Result<> read(int map, Rows<Key, Value>& rows) {
    std::size_t most = std::max<std::size_t>(kMinRows, kBytes / (sizeof(Value) * cpus_));
    std::vector<Key> keys;
    std::vector<Value> values;
    std::array<std::uint32_t, 2> places{};  // where the kernel goes on
    bool first = true;
    while (true) {
      keys.resize(most);
      values.resize(most * cpus_);
      auto count = static_cast<std::uint32_t>(most);
      const int error = bpf().map_lookup_batch(map, first ? nullptr : &places[0], &places[1],
                                               keys.data(), values.data(), &count, nullptr);
      if (error != 0 && errno == ENOSPC && most < kMaxRows) {
        most *= 2;  // one of the hash table's chains is longer
        continue;
      }
      if (error != 0 && errno != ENOENT) {
        return fail(ErrorCode::kInternal, "{}", std::generic_category().message(errno));
      }
      for (std::size_t i = 0; i < count; ++i) {
        Value sum{};
        for (const Value& value : std::span(values).subspan(i * cpus_, cpus_)) {
          sum = add(sum, value);
        }
        rows.emplace_back(keys[i], sum);
      }
      if (error != 0) {
        return {};
      }
      first = false;
      places[0] = places[1];
    }
  }

 private:
  static constexpr std::size_t kBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kMinRows = 16;
  static constexpr std::size_t kMaxRows = 65536;

  unsigned cpus_;
};

}  // namespace ceems::exporter::ebpf
