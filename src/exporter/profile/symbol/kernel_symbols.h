#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "host/paths.h"

namespace ceems::exporter::profile {

/// The functions of the kernel and its modules. Immutable, so safe for concurrent use.
class KernelSymbols {
 public:
  /// Of a text of the form of /proc/kallsyms.
  static KernelSymbols parse(std::string_view text);

  /// The name of the function that holds an address; nothing below the first one.
  [[nodiscard]] std::optional<std::string_view> find(std::uint64_t address) const;
  [[nodiscard]] std::size_t size() const { return symbols_.size(); }

 private:
  struct Symbol {
    std::uint64_t address = 0;
    std::uint32_t name = 0;  ///< offset in names_
  };
  std::vector<Symbol> symbols_;
  std::string names_;
};

/// Reads /proc/kallsyms. kPermissionDenied if the kernel hides its addresses (kernel.kptr_restrict)
/// from a program without CAP_SYSLOG.
Result<KernelSymbols> read_kernel_symbols(const host::Paths& paths);

}  // namespace ceems::exporter::profile
