#include "exporter/gpu/claim/gres_conf.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxNodes = 65536;
constexpr std::size_t kMaxNumbers = 4096;
constexpr std::size_t kMaxLines = 65536;
constexpr std::uint64_t kMaxNumber = 1ULL << 32U;

/// Removes the text up to the next `separator` outside brackets from `rest` and returns it.
std::string_view take_outside_brackets(std::string_view& rest, char separator) {
  bool inside = false;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    inside = rest[i] == '[' || (inside && rest[i] != ']');
    if (rest[i] == separator && !inside) {
      const auto part = rest.substr(0, i);
      rest.remove_prefix(i + 1);
      return part;
    }
  }
  return std::exchange(rest, {});
}

/// The first and last number of "7" or "2-5".
std::optional<std::pair<std::uint64_t, std::uint64_t>> parse_range(std::string_view text) {
  const auto first = parse_int(trim(take_until(text, '-')));
  const auto last = text.empty() ? first : parse_int(trim(text));
  if (!first || !last || *last < *first || *last > kMaxNumber) {
    return std::nullopt;
  }
  return std::pair(*first, *last);
}

/// Expands one item of a host list, which has at most one pair of brackets, as slurmctld writes
/// them.
void expand_item(std::string_view item, std::vector<std::string>& nodes) {
  const auto literally = [&] {
    if (!item.empty() && nodes.size() < kMaxNodes) {
      nodes.emplace_back(item);
    }
  };
  const std::size_t open = item.find('[');
  const std::size_t close = item.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    literally();
    return;
  }
  const auto before = item.substr(0, open);
  const auto after = item.substr(close + 1);
  std::string_view ranges = item.substr(open + 1, close - open - 1);
  while (!ranges.empty()) {
    const auto text = take_until(ranges, ',');
    const auto range = parse_range(text);
    if (!range) {
      literally();
      return;
    }
    const std::size_t width = std::min(text.find('-'), text.size());
    for (std::uint64_t i = range->first; i <= range->second && nodes.size() < kMaxNodes; ++i) {
      nodes.push_back(
          fmt::format("{}{:0{}}{}", before, i, std::min<std::size_t>(width, 20), after));
    }
  }
}

std::optional<GresLine> parse_line(std::string_view raw) {
  const std::string lower = to_lower(raw.substr(0, raw.find('#')));
  std::string_view rest = lower;
  GresLine line;
  for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const auto key = take_until(word, '=');
    if (key == "name") {
      line.type = word;
    } else if (key == "nodename") {
      line.nodes = expand_nodes(word);
    } else if (key == "count") {
      line.count = parse_int(word).value_or(0);
    } else if (key == "file" || key == "files" || key == "multiplefiles") {
      while (!word.empty()) {
        line.files.emplace_back(take_outside_brackets(word, ','));
      }
    }
  }
  if (line.type != "shard" && line.type != "mps") {
    return std::nullopt;
  }
  return line;
}

/// The numbers after `prefix` in a device path such as "/dev/nvidia[0-3]". Nothing if it does not
/// start with the prefix or the rest is not a list of numbers.
std::optional<std::vector<std::uint64_t>> numbers_behind(std::string_view path,
                                                         std::string_view prefix) {
  if (!path.starts_with(prefix)) {
    return std::nullopt;
  }
  path.remove_prefix(prefix.size());
  if (path.starts_with('[') && path.ends_with(']')) {
    path = path.substr(1, path.size() - 2);
  }
  auto numbers = expand_numbers(path);
  return numbers.empty() ? std::nullopt : std::optional(std::move(numbers));
}

/// The devices that the files of one line stand for.
struct Targets {
  std::vector<std::uint64_t> gpus;  ///< NVIDIA: numbers of devices
  std::vector<MigMinor> instances;
  std::vector<std::uint64_t> render_minors;
  [[nodiscard]] bool none() const {
    return gpus.empty() && instances.empty() && render_minors.empty();
  }
};

Targets targets_of(const GresLine& line, const std::vector<MigMinor>& mig_minors, bool every_file) {
  Targets targets;
  for (const std::string& file : line.files) {
    if (const auto capabilities = numbers_behind(file, "/dev/nvidia-caps/nvidia-cap")) {
      for (const std::uint64_t capability : *capabilities) {
        const auto found =
            std::find_if(mig_minors.begin(), mig_minors.end(),
                         [&](const MigMinor& minor) { return minor.capability == capability; });
        if (found != mig_minors.end()) {
          targets.instances.push_back(*found);
        }
      }
    } else if (const auto gpus = numbers_behind(file, "/dev/nvidia")) {
      if (!every_file) {
        targets.gpus.clear();
      }
      targets.gpus.insert(targets.gpus.end(), gpus->begin(), gpus->end());
    } else if (const auto minors = numbers_behind(file, "/dev/dri/renderd")) {  // lower case
      targets.render_minors.insert(targets.render_minors.end(), minors->begin(), minors->end());
    }
  }
  return targets;
}

bool contains(const std::vector<std::uint64_t>& list, std::uint64_t number) {
  return std::find(list.begin(), list.end(), number) != list.end();
}

/// The number N of /dev/nvidia<N>. If the driver does not report it, the position is used.
std::uint64_t device_number(const Device& device) {
  return device.driver_minor.value_or(device.position);
}

void set_shares(const Targets& targets,
                std::uint64_t count,
                const Device& device,
                AvailableShares::OfDevice& shares) {
  if (device.vendor == Vendor::kNvidia) {
    bool by_instance = false;
    for (const MigMinor& minor : targets.instances) {
      if (minor.gpu != device_number(device)) {
        continue;
      }
      by_instance = true;
      for (std::size_t i = 0; i < device.instances.size(); ++i) {
        if (device.instances[i].gpu_instance == minor.gpu_instance &&
            device.instances[i].compute_instance == minor.compute_instance) {
          shares.instances[i] = count;
        }
      }
    }
    if (!by_instance && contains(targets.gpus, device_number(device))) {
      shares.device = count;
    }
    return;
  }
  if (device.render_minor && contains(targets.render_minors, *device.render_minor)) {
    shares.device = count;
  }
  for (std::size_t i = 0; i < device.instances.size(); ++i) {
    const auto minor = device.instances[i].render_minor;
    if (minor && contains(targets.render_minors, *minor)) {
      shares.instances[i] = count;
    }
  }
}

void set_everywhere(std::uint64_t count,
                    const std::vector<Device>& devices,
                    AvailableShares& available) {
  for (std::size_t i = 0; i < devices.size(); ++i) {
    auto& shares = available.devices[i];
    if (devices[i].instances.empty()) {
      shares.device = count;
    }
    std::fill(shares.instances.begin(), shares.instances.end(), count);
  }
}

bool is_for(const GresLine& line, const std::vector<std::string>& names) {
  return line.nodes.empty() || names.empty() ||
         std::any_of(names.begin(), names.end(), [&](const std::string& name) {
           return std::find(line.nodes.begin(), line.nodes.end(), name) != line.nodes.end();
         });
}

void apply(std::string_view type,
           const std::vector<GresLine>& lines,
           const std::vector<MigMinor>& mig_minors,
           const std::vector<std::string>& node_names,
           const std::vector<Device>& devices,
           bool every_file,
           AvailableShares& available) {
  for (const GresLine& line : lines) {
    if (line.type != type || !is_for(line, node_names)) {
      continue;
    }
    available.sharing = true;
    const Targets targets = targets_of(line, mig_minors, every_file);
    if (line.files.empty() && line.count > 0) {
      set_everywhere(line.count, devices, available);
      return;  // the count of the whole node, as in the reference
    }
    if (targets.none()) {
      continue;
    }
    for (std::size_t i = 0; i < devices.size(); ++i) {
      set_shares(targets, line.count, devices[i], available.devices[i]);
    }
  }
}

}  // namespace

std::vector<GresLine> parse_gres_conf(std::string_view text) {
  std::vector<GresLine> lines;
  while (!text.empty() && lines.size() < kMaxLines) {
    if (auto line = parse_line(take_until(text, '\n'))) {
      lines.push_back(*std::move(line));
    }
  }
  return lines;
}

std::vector<MigMinor> parse_mig_minors(std::string_view text) {
  std::vector<MigMinor> minors;
  while (!text.empty() && minors.size() < kMaxLines) {
    std::string_view line = take_until(text, '\n');
    std::string_view path = take_word(line);
    const auto capability = parse_int(trim(line));
    MigMinor minor;
    bool has_gpu = false;
    while (!path.empty()) {
      const auto part = take_until(path, '/');
      const auto number = [&](std::string_view prefix) {
        return part.starts_with(prefix) ? parse_int(part.substr(prefix.size())) : std::nullopt;
      };
      if (const auto gpu = number("gpu")) {
        minor.gpu = *gpu;
        has_gpu = true;
      } else if (const auto gpu_instance = number("gi")) {
        minor.gpu_instance = *gpu_instance;
      } else if (const auto compute_instance = number("ci")) {
        minor.compute_instance = *compute_instance;
      }
    }
    if (capability && has_gpu) {
      minor.capability = *capability;
      minors.push_back(minor);
    }
  }
  return minors;
}

std::vector<std::string> expand_nodes(std::string_view text) {
  const std::string lower = to_lower(text);
  std::string_view rest = lower;
  std::vector<std::string> nodes;
  while (!rest.empty() && nodes.size() < kMaxNodes) {
    expand_item(trim(take_outside_brackets(rest, ',')), nodes);
  }
  return nodes;
}

std::vector<std::uint64_t> expand_numbers(std::string_view text) {
  std::vector<std::uint64_t> numbers;
  while (!text.empty()) {
    const auto range = parse_range(take_until(text, ','));
    if (!range) {
      return {};
    }
    for (std::uint64_t i = range->first; i <= range->second; ++i) {
      if (numbers.size() == kMaxNumbers) {
        return numbers;
      }
      numbers.push_back(i);
    }
  }
  return numbers;
}

AvailableShares available_shares(const std::vector<GresLine>& lines,
                                 const std::vector<MigMinor>& mig_minors,
                                 const std::vector<std::string>& node_names,
                                 const std::vector<Device>& devices,
                                 bool every_file) {
  AvailableShares available;
  available.devices.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    available.devices[i].instances.resize(devices[i].instances.size());
  }
  for (const std::string_view type : {"shard", "mps"}) {
    apply(type, lines, mig_minors, node_names, devices, every_file, available);
  }
  return available;
}

}  // namespace ceems::exporter::gpu
