#include <algorithm>

#include <pugixml.hpp>

#include "base/strings.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/inventory/vendor_tools.h"

namespace ceems::exporter::gpu {
namespace {

constexpr std::size_t kMaxSmiDevices = 1024;  // GPUs, instances and vGPUs in a tool's output
constexpr std::size_t kMaxSmiText = 256;      // names and ids
constexpr std::ptrdiff_t kMaxTags = 500'000;  // ten times the tags of 16 GPUs with all their clocks
constexpr std::string_view kUuidMark = "(UUID: ";

std::string clip(std::string_view text) {
  return std::string(trim(text).substr(0, kMaxSmiText));
}

std::string text_of(const pugi::xml_node& node) {
  return clip(node.text().get());
}

Result<std::uint64_t> number_of(const pugi::xml_node& parent, const char* name) {
  const std::string text = text_of(parent.child(name));
  const auto number = parse_int(text);
  if (!number) {
    return fail(ErrorCode::kParse, "mig_device: {}: expected a number, got '{}'", name,
                printable(text));
  }
  return *number;
}

Result<Instance> parse_mig_device(const pugi::xml_node& node) {
  const auto number = number_of(node, "index");
  const auto gpu_instance = number_of(node, "gpu_instance_id");
  const auto compute_instance = number_of(node, "compute_instance_id");
  for (const auto* value : {&number, &gpu_instance, &compute_instance}) {
    if (!*value) {
      return fail(value->error());
    }
  }
  const auto count = node.child("device_attributes").child("shared").child("multiprocessor_count");
  return Instance{.index = {},
                  .number = *number,
                  .uuid = {},
                  .gpu_instance = *gpu_instance,
                  .compute_instance = *compute_instance,
                  .sm_count = count ? parse_int(text_of(count)).value_or(1) : 0};
}

Device parse_gpu(const pugi::xml_node& node) {
  Device device;
  const std::string id = clip(node.attribute("id").value());
  device.address = parse_pci_address(id);
  device.path_name = device.address ? to_lower(id) : std::string();
  const std::string product = text_of(node.child("product_name"));
  device.name = product;
  device.uuid = text_of(node.child("uuid"));
  device.sm_count = sm_count_of(product);
  device.driver_minor = parse_int(text_of(node.child("minor_number")));
  device.split = to_lower(text_of(node.child("mig_mode").child("current_mig"))) == "enabled";
  const std::string mode =
      to_lower(text_of(node.child("gpu_virtualization_mode").child("virtualization_mode")));
  device.vgpu = mode == "vgpu" || mode == "host vgpu";
  return device;
}

/// The text X of "(UUID: X)" at the end of a line.
std::optional<std::string_view> uuid_at_end(std::string_view line) {
  const std::size_t at = line.rfind(kUuidMark);
  if (at == std::string_view::npos || !line.ends_with(')')) {
    return std::nullopt;
  }
  return line.substr(at + kUuidMark.size(), line.size() - at - kUuidMark.size() - 1);
}

/// The number N of "GPU N: ..." or "... Device  N: ...".
std::optional<std::uint64_t> number_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  line.remove_prefix(at + word.size());
  return line.find(':') == std::string_view::npos ? std::nullopt
                                                  : parse_int(trim(take_until(line, ':')));
}

/// The address in a line that is exactly "GPU 00000000:10:00.0".
std::optional<PciAddress> vgpu_block(std::string_view line) {
  constexpr std::string_view kStart = "GPU ";
  if (!line.starts_with(kStart) ||
      line.find_first_not_of("0123456789abcdefABCDEF.:", kStart.size()) != line.npos) {
    return std::nullopt;
  }
  return parse_pci_address(line);
}

class VgpuParser {
 public:
  void line(std::string_view line) {
    if (line.starts_with("GPU ")) {
      flush();
      gpu_ = vgpu_block(line);
      return;
    }
    std::string_view value = trim(line);
    const auto key = trim(take_until(value, ':'));
    value = trim(value);
    if (key == "vGPU ID") {
      flush();
    } else if (key == "MDEV UUID") {
      if (!mdev_.empty()) {
        flush();
      }
      mdev_ = clip(value);
    } else if (key == "GPU Instance ID") {
      instance_ = parse_int(value);
    }
  }

  std::vector<VgpuEntry> finish() {
    flush();
    return std::move(entries_);
  }

 private:
  void flush() {
    if (gpu_ && !mdev_.empty() && mdev_ != "N/A" && entries_.size() < kMaxSmiDevices) {
      entries_.push_back({.gpu = *gpu_, .mdev = mdev_, .gpu_instance = instance_});
    }
    mdev_.clear();
    instance_.reset();
  }

  std::vector<VgpuEntry> entries_;
  std::optional<PciAddress> gpu_;
  std::string mdev_;
  std::optional<std::uint64_t> instance_;
};

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) {
    list.push_back(text);
  }
}

}  // namespace

Result<std::vector<Device>> parse_nvidia_query(std::string_view xml) {
  if (std::count(xml.begin(), xml.end(), '<') > kMaxTags) {
    return fail(ErrorCode::kParse, "more than {} tags", kMaxTags);
  }
  pugi::xml_document document;
  // With the default options pugixml expands only the five entities of XML itself and ignores
  // DOCTYPE.
  const auto parsed =
      document.load_buffer(xml.data(), xml.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!parsed) {
    return fail(ErrorCode::kParse, "XML at byte {}: {}", parsed.offset, parsed.description());
  }
  const auto root = document.child("nvidia_smi_log");
  if (!root) {
    return fail(ErrorCode::kParse, "expected an element nvidia_smi_log");
  }
  std::vector<Device> devices;
  std::uint64_t next_index = 0;
  for (const auto& node : root.children("gpu")) {
    if (devices.size() == kMaxSmiDevices) {
      return fail(ErrorCode::kParse, "more than {} GPUs", kMaxSmiDevices);
    }
    Device device = parse_gpu(node);
    device.position = devices.size();
    if (!device.split) {
      device.index = std::to_string(next_index++);
    } else {
      for (const auto& part : node.child("mig_devices").children("mig_device")) {
        CEEMS_TRY(instance, parse_mig_device(part));
        if (device.instances.size() == kMaxSmiDevices) {
          return fail(ErrorCode::kParse, "more than {} MIG devices", kMaxSmiDevices);
        }
        instance.index = std::to_string(next_index++);
        device.instances.push_back(std::move(instance));
      }
    }
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<MigUuid> parse_nvidia_list(std::string_view text) {
  std::vector<MigUuid> uuids;
  std::string gpu;
  while (!text.empty() && uuids.size() < kMaxSmiDevices) {
    const auto raw = take_until(text, '\n');
    const auto line = trim(raw);
    const auto uuid = uuid_at_end(line);
    if (!uuid) {
      continue;
    }
    if (raw.starts_with("GPU ") && number_after(line, "GPU ")) {
      gpu = clip(*uuid);
    } else if (line.starts_with("MIG ") && !gpu.empty()) {
      if (const auto number = number_after(line, " Device ")) {
        uuids.push_back({.gpu_uuid = gpu, .number = *number, .uuid = clip(*uuid)});
      }
    }
  }
  return uuids;
}

void set_mig_uuids(const std::vector<MigUuid>& uuids, std::vector<Device>& devices) {
  for (Device& device : devices) {
    for (Instance& instance : device.instances) {
      const auto found = std::find_if(uuids.begin(), uuids.end(), [&](const MigUuid& uuid) {
        return uuid.gpu_uuid == device.uuid && uuid.number == instance.number;
      });
      if (found != uuids.end()) {
        instance.uuid = found->uuid;
      }
    }
  }
}

std::vector<VgpuEntry> parse_vgpu_query(std::string_view text) {
  VgpuParser parser;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    parser.line(line);
  }
  return parser.finish();
}

void set_mdevs(const std::vector<VgpuEntry>& entries, std::vector<Device>& devices) {
  for (Device& device : devices) {
    const auto here = [&](const VgpuEntry& entry) { return device.address == entry.gpu; };
    if (device.vendor != Vendor::kNvidia || std::none_of(entries.begin(), entries.end(), here)) {
      continue;
    }
    device.mdevs.clear();
    for (Instance& instance : device.instances) {
      instance.mdevs.clear();
    }
    for (const VgpuEntry& entry : entries) {
      if (!here(entry)) {
        continue;
      }
      if (!device.split) {
        add_once(device.mdevs, entry.mdev);
        continue;
      }
      for (Instance& instance : device.instances) {
        if (entry.gpu_instance == instance.gpu_instance) {
          add_once(instance.mdevs, entry.mdev);
          break;
        }
      }
    }
  }
}

}  // namespace ceems::exporter::gpu
