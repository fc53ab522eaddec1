#include "exporter/gpu/inventory/library_list.h"

#include <algorithm>
#include <cstdio>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/gpu/inventory/device_names.h"
#include "exporter/gpu/library/gpu_library.h"

namespace ceems::exporter::gpu {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxListText = std::size_t{4} << 20U;
constexpr std::size_t kMaxString = 256;
constexpr std::size_t kMaxDepth = 8;

std::optional<Vendor> vendor_of(std::string_view name) {
  for (const Vendor vendor : {Vendor::kNvidia, Vendor::kAmd, Vendor::kIntel}) {
    if (name == to_string(vendor)) {
      return vendor;
    }
  }
  return std::nullopt;
}

/// The fields of a JSON object. A field that is missing or has another type counts as empty.
class Fields {
 public:
  explicit Fields(const json::value& value) : object_(value.if_object()) {}

  [[nodiscard]] const json::value* find(std::string_view name) const {
    return object_ == nullptr ? nullptr : object_->if_contains(name);
  }
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto* value = find(name);
    const auto* string = value == nullptr ? nullptr : value->if_string();
    return string == nullptr
               ? std::string()
               : printable(std::string_view(string->data(), string->size()), kMaxString);
  }
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name) const {
    const auto* value = find(name);
    if (value == nullptr || value->is_double()) {
      return std::nullopt;
    }
    if (const auto* large = value->if_uint64()) {
      return *large;
    }
    const auto* small = value->if_int64();
    return small != nullptr && *small >= 0 ? std::optional(static_cast<std::uint64_t>(*small))
                                           : std::nullopt;
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    const auto* value = find(name);
    const auto* given = value == nullptr ? nullptr : value->if_bool();
    return given != nullptr && *given;
  }
  [[nodiscard]] const json::array* list(std::string_view name) const {
    const auto* value = find(name);
    return value == nullptr ? nullptr : value->if_array();
  }

 private:
  const json::object* object_;
};

json::object to_json(const Instance& instance) {
  return {{"index", instance.index},
          {"number", instance.number},
          {"uuid", instance.uuid},
          {"gpu_instance", instance.gpu_instance},
          {"compute_instance", instance.compute_instance},
          {"sm_count", instance.sm_count}};
}

json::object to_json(const Device& device) {
  json::object object{{"vendor", to_string(device.vendor)},
                      {"position", device.position},
                      {"index", device.index},
                      {"uuid", device.uuid},
                      {"name", device.name},
                      {"sm_count", device.sm_count},
                      {"split", device.split},
                      {"vgpu", device.vgpu},
                      {"lost", device.lost}};
  if (device.driver_minor) {
    object["driver_minor"] = *device.driver_minor;
  }
  if (device.address) {
    object["address"] = to_string(*device.address);
  }
  json::array& instances = object["instances"].emplace_array();
  for (const Instance& instance : device.instances) {
    instances.push_back(to_json(instance));
  }
  return object;
}

Instance instance_of(const json::value& value) {
  const Fields fields(value);
  return {.index = fields.text("index"),
          .number = fields.number("number").value_or(0),
          .uuid = fields.text("uuid"),
          .gpu_instance = fields.number("gpu_instance").value_or(0),
          .compute_instance = fields.number("compute_instance").value_or(0),
          .sm_count = fields.number("sm_count").value_or(0)};
}

Result<Device> device_of(const json::value& value) {
  const Fields fields(value);
  const auto vendor = vendor_of(fields.text("vendor"));
  if (!vendor || fields.text("uuid").empty()) {
    return fail(ErrorCode::kParse, "list of GPUs: expected vendor and uuid in each entry");
  }
  Device device;
  device.vendor = *vendor;
  device.position = fields.number("position").value_or(0);
  device.driver_minor = fields.number("driver_minor");
  device.index = fields.text("index");
  device.uuid = fields.text("uuid");
  device.name = fields.text("name");
  device.address = parse_pci_address(fields.text("address"));
  device.path_name = device.address ? to_string(*device.address) : std::string();
  device.sm_count = fields.number("sm_count").value_or(0);
  device.split = fields.flag("split");
  device.vgpu = fields.flag("vgpu");
  device.lost = fields.flag("lost");
  if (const auto* instances = fields.list("instances")) {
    if (instances->size() > kMaxInstances) {
      return fail(ErrorCode::kParse, "list of GPUs: expected at most {} instances per GPU",
                  kMaxInstances);
    }
    for (const auto& instance : *instances) {
      device.instances.push_back(instance_of(instance));
    }
  }
  return device;
}

/// Numbers the devices as the vendor's tools do.
Result<std::vector<Device>> list_by_library(Vendor vendor, const std::string& path) {
  CEEMS_TRY(library, load_library(vendor, path));
  CEEMS_TRY(library->start());
  auto states = library->list();
  name_devices({}, states);
  return inventory_devices(states, vendor);
}

}  // namespace

int list_gpus(std::span<const char* const> arguments) {
  const auto vendor = arguments.empty() ? std::nullopt : vendor_of(arguments[0]);
  if (!vendor || arguments.size() > 2) {
    fmt::print(stderr, "usage: ceems_exporter {} nvidia|amd|intel [LIBRARY]\n", kListCommand);
    return 1;
  }
  const auto devices = list_by_library(*vendor, arguments.size() > 1 ? arguments[1] : "");
  if (!devices) {
    fmt::print(stderr, "{}\n", devices.error().message);
    return 1;
  }
  fmt::print("{}\n", device_list_text(*devices));
  return 0;
}

std::string device_list_text(const std::vector<Device>& devices) {
  json::array list;
  for (const Device& device : devices) {
    list.push_back(to_json(device));
  }
  return json::serialize(list);
}

Result<std::vector<Device>> parse_device_list(std::string_view text) {
  if (text.size() > kMaxListText) {
    return fail(ErrorCode::kParse, "list of GPUs: expected at most {} bytes", kMaxListText);
  }
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::error_code error;
  const auto document = json::parse(trim(text), error, {}, options);
  if (error) {
    return fail(ErrorCode::kParse, "list of GPUs: {}", error.message());
  }
  const auto* list = document.if_array();
  if (list == nullptr || list->size() > kMaxDevices) {
    return fail(ErrorCode::kParse, "list of GPUs: expected an array of at most {}", kMaxDevices);
  }
  std::vector<Device> devices;
  for (const auto& entry : *list) {
    CEEMS_TRY(device, device_of(entry));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace ceems::exporter::gpu
