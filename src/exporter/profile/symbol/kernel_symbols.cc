#include "exporter/profile/symbol/kernel_symbols.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "base/strings.h"
#include "host/read_file.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxText = 64U << 20U;

}  // namespace

KernelSymbols KernelSymbols::parse(std::string_view text) {
  KernelSymbols kernel;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view number = take_word(line);
    const std::string_view type = take_word(line);
    const std::string_view name = take_word(line);
    std::uint64_t address = 0;
    const auto [end, error] =
        std::from_chars(number.data(), number.data() + number.size(), address, 16);
    // Only code: t and T, and weak symbols, which may be either.
    if (error != std::errc{} || end != number.data() + number.size() || address == 0 ||
        type.size() != 1 || std::string_view("tTwW").find(type) == std::string_view::npos ||
        name.empty()) {
      continue;
    }
    kernel.symbols_.push_back(
        {.address = address, .name = static_cast<std::uint32_t>(kernel.names_.size())});
    kernel.names_ += name;
    kernel.names_ += '\0';
  }
  std::ranges::stable_sort(kernel.symbols_, {}, &Symbol::address);
  const auto repeated = std::ranges::unique(kernel.symbols_, {}, &Symbol::address);
  kernel.symbols_.erase(repeated.begin(), repeated.end());
  kernel.symbols_.shrink_to_fit();
  kernel.names_.shrink_to_fit();
  return kernel;
}

std::optional<std::string_view> KernelSymbols::find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
  if (after == symbols_.begin()) {
    return std::nullopt;
  }
  return std::string_view(names_.c_str() + std::prev(after)->name);
}

Result<KernelSymbols> read_kernel_symbols(const host::Paths& paths) {
  CEEMS_TRY(text, host::read_file((paths.proc / "kallsyms").string(), kMaxText));
  auto kernel = KernelSymbols::parse(text);
  if (kernel.size() == 0) {
    return fail(ErrorCode::kPermissionDenied,
                "/proc/kallsyms: the kernel hides its addresses (kernel.kptr_restrict)");
  }
  return kernel;
}

}  // namespace ceems::exporter::profile
