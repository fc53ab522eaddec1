#include "exporter/profile/symbol/names/symbol_table.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxName = 4096;
/// Functions rarely lie within others (hand-written code has inner labels). The number of functions
/// examined before an address.
constexpr std::size_t kMaxNested = 8;
constexpr std::uint16_t kRanksPerSource = 64;

/// Of several names of one function, people know the one with the fewest leading underscores:
/// malloc, not __libc_malloc. Local ones come last.
std::uint16_t alias_rank(std::string_view name, bool is_local) {
  const std::size_t underscores = std::min(name.find_first_not_of('_'), name.size());
  return static_cast<std::uint16_t>(std::min<std::size_t>(underscores, kRanksPerSource / 2 - 1) +
                                    (is_local ? kRanksPerSource / 2 : 0));
}

/// Without the version of a dynamic symbol: memcpy@@GLIBC_2.14.
std::string_view without_version(std::string_view name) {
  const std::size_t version = name.find('@');
  return version == 0 ? name : name.substr(0, version);
}

}  // namespace

bool SymbolTable::covers(std::size_t index, std::uint32_t pc) const {
  const Symbol& symbol = symbols_[index];
  return symbol.size == 0 || pc - symbol.start < symbol.size;
}

std::optional<std::string_view> SymbolTable::find(std::uint32_t pc) const {
  const auto after = std::ranges::upper_bound(symbols_, pc, {}, &Symbol::start);
  auto index = static_cast<std::size_t>(after - symbols_.begin());
  for (std::size_t tries = 0; index > 0 && tries < kMaxNested; ++tries) {
    --index;
    // One without a size ends where the next one begins, so it counts only if it is the nearest.
    if (covers(index, pc) && (tries == 0 || symbols_[index].size != 0)) {
      return std::string_view(names_.c_str() + symbols_[index].name);
    }
  }
  return std::nullopt;
}

std::size_t SymbolTable::memory_bytes() const {
  return symbols_.capacity() * sizeof(Symbol) + names_.capacity();
}

void SymbolTableBuilder::add(std::vector<Function> functions, FileWindow& names) {
  std::ranges::sort(functions, {}, &Function::name);
  const std::uint16_t source = sources_++;
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const Function& function = functions[i];
    std::string_view name = names.at(function.name, kMaxName);
    name = without_version(name.substr(0, name.find('\0')));
    if (name.empty()) {
      continue;
    }
    if (entries_.size() >= limits_.symbols || names_.size() + name.size() > limits_.name_bytes) {
      dropped_ += functions.size() - i;
      return;
    }
    const auto rank =
        static_cast<std::uint16_t>(source * kRanksPerSource + alias_rank(name, function.is_local));
    entries_.push_back({.start = function.start,
                        .size = function.size,
                        .name = static_cast<std::uint32_t>(names_.size()),
                        .length = static_cast<std::uint16_t>(name.size()),
                        .rank = rank});
    names_ += name;
  }
}

SymbolTable SymbolTableBuilder::finish() {
  const auto better = [this](const Entry& left, const Entry& right) {
    const auto text = [this](const Entry& entry) {
      return std::string_view(names_).substr(entry.name, entry.length);
    };
    return std::tuple(left.start, left.rank, left.length, text(left)) <
           std::tuple(right.start, right.rank, right.length, text(right));
  };
  std::ranges::sort(entries_, better);
  SymbolTable table;
  table.dropped_ = dropped_;
  const auto repeated = std::ranges::unique(entries_, {}, &Entry::start);
  entries_.erase(repeated.begin(), repeated.end());
  std::size_t bytes = 0;
  for (const Entry& entry : entries_) {
    bytes += entry.length + 1U;
  }
  table.symbols_.reserve(entries_.size());
  table.names_.reserve(bytes);
  for (const Entry& entry : entries_) {
    table.symbols_.push_back({.start = entry.start,
                              .size = entry.size,
                              .name = static_cast<std::uint32_t>(table.names_.size())});
    table.names_.append(names_, entry.name, entry.length);
    table.names_ += '\0';
  }
  entries_.clear();
  names_.clear();
  return table;
}

}  // namespace ceems::exporter::profile
