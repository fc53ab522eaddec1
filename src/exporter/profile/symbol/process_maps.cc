#include "exporter/profile/symbol/process_maps.h"

#include <sys/capability.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "host/read_file.h"
#include "os/privileges.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::string_view kDeleted = " (deleted)";
constexpr std::size_t kMaxPath = 4096;

template <class Number>
std::optional<Number> hexadecimal(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The kernel writes a line feed in a name as \012 and nothing else differently.
std::string unescaped(std::string_view name) {
  std::string path;
  path.reserve(name.size());
  while (!name.empty()) {
    const std::size_t escape = std::min(name.find("\\012"), name.size());
    path += name.substr(0, escape);
    name.remove_prefix(escape);
    if (!name.empty()) {
      path += '\n';
      name.remove_prefix(4);
    }
  }
  return path;
}

void set_name(Mapping& mapping, std::string_view name) {
  if (name.starts_with('/') && !name.starts_with("//anon")) {
    mapping.deleted = name.ends_with(kDeleted);
    if (mapping.deleted) {
      name.remove_suffix(kDeleted.size());
    }
    mapping.kind = Mapping::Kind::kFile;
    mapping.path = unescaped(name.substr(0, kMaxPath));
  } else if (name == "[vdso]") {
    mapping.kind = Mapping::Kind::kVdso;
    mapping.path = name;
  } else if (name.starts_with('[') && !name.starts_with("[anon")) {
    mapping.kind = Mapping::Kind::kSpecial;
    mapping.path = name.substr(0, kMaxPath);
  }
}

/// An executable mapping; nothing for others and for lines that are malformed.
std::optional<Mapping> executable_mapping(std::string_view line) {
  std::string_view range = take_word(line);
  const std::string_view permissions = take_word(line);
  if (permissions.size() != 4 || permissions[2] != 'x') {
    return std::nullopt;
  }
  const auto start = hexadecimal<std::uint64_t>(take_until(range, '-'));
  const auto end = hexadecimal<std::uint64_t>(range);
  const auto offset = hexadecimal<std::uint64_t>(take_word(line));
  std::string_view device = take_word(line);
  const auto dev_major = hexadecimal<std::uint32_t>(take_until(device, ':'));
  const auto dev_minor = hexadecimal<std::uint32_t>(device);
  const auto inode = parse_int(take_word(line));
  if (!start || !end || !offset || !dev_major || !dev_minor || !inode || *start >= *end) {
    return std::nullopt;
  }
  Mapping mapping;
  mapping.start = *start;
  mapping.end = *end;
  mapping.offset = *offset;
  mapping.dev_major = *dev_major;
  mapping.dev_minor = *dev_minor;
  mapping.inode = *inode;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  set_name(mapping, line);
  return mapping;
}

}  // namespace

const Mapping* ProcessMaps::find(std::uint64_t address) const {
  const auto after =
      std::ranges::upper_bound(mappings, address, {}, [](const Mapping& m) { return m.start; });
  if (after == mappings.begin() || address >= std::prev(after)->end) {
    return nullptr;
  }
  return &*std::prev(after);
}

ProcessMaps parse_maps(std::string_view text) {
  ProcessMaps maps;
  std::size_t path_bytes = 0;
  while (!text.empty()) {
    auto mapping = executable_mapping(take_until(text, '\n'));
    if (!mapping || (!maps.mappings.empty() && mapping->start < maps.mappings.back().end)) {
      continue;
    }
    path_bytes += mapping->path.size();
    if (maps.mappings.size() == kMaxMappings || path_bytes > kMaxPathBytes) {
      maps.truncated = true;
      break;
    }
    maps.mappings.push_back(std::move(*mapping));
  }
  return maps;
}

Result<ProcessMaps> read_maps(const host::Paths& paths, pid_t pid) {
  const os::RaisedCapabilities raised{CAP_SYS_PTRACE};
  CEEMS_TRY(text, host::read_file(fmt::format("{}/{}/maps", paths.proc.string(), pid)));
  return parse_maps(text);
}

}  // namespace ceems::exporter::profile
