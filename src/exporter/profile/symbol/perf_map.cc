#include "exporter/profile/symbol/perf_map.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/profile/symbol/binary_file.h"
#include "host/read_file.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxFile = 64U << 20U;
constexpr std::size_t kMaxRanges = 200'000;
constexpr std::size_t kMaxNameBytes = 8U << 20U;
constexpr std::size_t kMaxLineName = 1024;
constexpr std::uint64_t kPiece = 1U << 20U;

std::optional<std::uint64_t> hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) {
    text.remove_prefix(2);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The pid of a process in its own pid namespace, and its user.
struct Owner {
  std::string_view pid;
  std::optional<std::uint64_t> user;
};

Owner owner_of(std::string_view status) {
  Owner owner;
  while (!status.empty()) {
    std::string_view line = take_until(status, '\n');
    const std::string_view key = take_until(line, ':');
    if (key == "NSpid") {
      while (!trim(line).empty()) {
        owner.pid = take_word(line);  // the last one is of the innermost namespace
      }
    } else if (key == "Uid") {
      take_word(line);
      owner.user = parse_int(take_word(line));  // the effective one
    }
  }
  return owner;
}

constexpr std::size_t kMaxText = 64U << 20U;

}  // namespace

PerfMap PerfMap::parse(std::string_view text) {
  PerfMap map;
  map.add_lines(text);
  map.keep_the_latest();
  return map;
}

void PerfMap::add_lines(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const auto start = hexadecimal(take_word(line));
    const auto size = hexadecimal(take_word(line));
    const std::string_view name = trim(line).substr(0, kMaxLineName);
    if (!start || !size || *size == 0 || name.empty() ||
        *size > std::numeric_limits<std::uint64_t>::max() - *start ||
        ranges_.size() == kMaxRanges || names_.size() + name.size() >= kMaxNameBytes) {
      ++dropped_;
      continue;
    }
    ranges_.push_back({.start = *start,
                       .end = *start + *size,
                       .name = static_cast<std::uint32_t>(names_.size()),
                       .line = static_cast<std::uint32_t>(ranges_.size())});
    names_ += name.substr(0, name.find('\0'));
    names_ += '\0';
  }
}

void PerfMap::keep_the_latest() {
  // Sweeps over the addresses at which a range begins or ends. Of the open ones, the one of the
  // last line counts.
  struct Edge {
    std::uint64_t address = 0;
    std::uint32_t range = 0;
    bool begins = false;
  };
  std::vector<Edge> edges;
  edges.reserve(ranges_.size() * 2);
  for (const Range& range : ranges_) {
    edges.push_back({.address = range.start, .range = range.line, .begins = true});
    edges.push_back({.address = range.end, .range = range.line, .begins = false});
  }
  std::ranges::sort(edges, {}, &Edge::address);
  std::map<std::uint32_t, std::uint32_t, std::greater<>> open;  // by line, the last one first
  std::vector<Range> result;
  std::uint64_t from = 0;
  for (const Edge& edge : edges) {
    if (!open.empty() && edge.address > from) {
      const Range& top = ranges_[open.begin()->first];
      if (!result.empty() && result.back().line == top.line && result.back().end == from) {
        result.back().end = edge.address;
      } else {
        result.push_back({.start = from, .end = edge.address, .name = top.name, .line = top.line});
      }
    }
    from = edge.address;
    if (edge.begins) {
      open.emplace(edge.range, 0);
    } else {
      open.erase(edge.range);
    }
  }
  result.shrink_to_fit();
  ranges_ = std::move(result);
}

std::size_t PerfMap::memory_bytes() const {
  return ranges_.capacity() * sizeof(Range) + names_.capacity();
}

std::optional<std::string_view> PerfMap::find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::start);
  if (after == ranges_.begin() || address >= std::prev(after)->end) {
    return std::nullopt;
  }
  return std::string_view(names_.c_str() + std::prev(after)->name);
}

Result<PerfMap> read_perf_map(const host::Paths& paths, pid_t pid) {
  CEEMS_TRY(status, host::read_file(fmt::format("{}/{}/status", paths.proc.string(), pid)));
  const Owner owner = owner_of(status);
  const std::string name = owner.pid.empty() ? fmt::format("{}", pid) : std::string(owner.pid);
  if (!owner.user || !parse_int<pid_t>(name)) {
    return fail(ErrorCode::kParse, "the status of process {} has no user", pid);
  }
  const std::string path = fmt::format("/tmp/perf-{}.map", name);
  CEEMS_TRY(file, BinaryFile::open_in_process(paths, pid, path, BinaryFile::Links::kRefuse));
  if (file.owner() != *owner.user) {
    return fail(ErrorCode::kInvalidArgument, "{} of process {} belongs to another user", path, pid);
  }
  if (file.size() > kMaxFile) {
    return fail(ErrorCode::kInvalidArgument, "{} of process {} is larger than {} bytes", path, pid,
                kMaxFile);
  }
  PerfMap map;
  std::string rest;  // of a line that a piece cuts
  for (std::uint64_t at = 0; at < file.size(); at += kPiece) {
    CEEMS_TRY(piece, file.read(at, std::min(kPiece, file.size() - at)));
    rest += piece;
    const std::size_t end = rest.rfind('\n') + 1;  // 0 without a line end
    map.add_lines(std::string_view(rest).substr(0, end));
    rest.erase(0, end);
    if (rest.size() > kPiece) {
      return fail(ErrorCode::kParse, "{} of process {} has a line of {} bytes", path, pid,
                  rest.size());
    }
  }
  // The runtime may be writing the last line: without its end it does not count.
  map.keep_the_latest();
  return map;
}

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
