#include <algorithm>
#include <array>
#include <map>

#include <boost/json.hpp>
#include <fmt/format.h>

#include "base/strings.h"
#include "exporter/gpu/inventory/vendor_tools.h"

namespace ceems::exporter::gpu {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxEntries = 4096;
constexpr std::ptrdiff_t kMaxValues = 500'000;
constexpr std::size_t kMaxAmdText = 256;
constexpr std::size_t kMaxJsonDepth = 16;

/// A GPU or a partition, as either tool lists it.
struct Entry {
  std::uint64_t order = 0;  ///< the tool's number
  std::string serial;       ///< empty if there is none
  std::string address;      ///< as written
  std::string name;
  bool partition = false;
  std::optional<std::uint64_t> partition_id;
};

/// The text of a string or number; "" for anything else and for "N/A".
std::string text_of(const json::value* value) {
  std::string text;
  if (value == nullptr) {
    return text;
  }
  if (const auto* string = value->if_string()) {
    text = trim(std::string_view(string->data(), std::min(string->size(), kMaxAmdText)));
  } else if (const auto* number = value->if_int64()) {
    text = std::to_string(*number);
  } else if (const auto* large = value->if_uint64()) {
    text = std::to_string(*large);
  }
  return to_lower(text) == "n/a" ? std::string() : text;
}

const json::value* member(const json::value* parent, std::string_view name) {
  const auto* object = parent == nullptr ? nullptr : parent->if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

bool is_partition_mode(std::string_view mode) {
  constexpr std::array<std::string_view, 4> kModes = {"dpx", "tpx", "qpx", "cpx"};
  return std::find(kModes.begin(), kModes.end(), to_lower(mode)) != kModes.end();
}

/// Finds the JSON document. The tools print warnings around it.
Result<json::value> parse(std::string_view text) {
  const std::size_t begin = text.find_first_of("[{");
  if (begin == std::string_view::npos) {
    return fail(ErrorCode::kParse, "expected JSON, got '{}'", printable(text));
  }
  const std::size_t end = text.rfind(text[begin] == '[' ? ']' : '}');
  if (end == std::string_view::npos || end < begin) {
    return fail(ErrorCode::kParse, "expected the end of the JSON document");
  }
  // Each value takes many times the memory of its text, so their number is limited before they are
  // built.
  const auto values = std::count_if(text.begin(), text.end(),
                                    [](char c) { return c == ',' || c == '[' || c == '{'; });
  if (values > kMaxValues) {
    return fail(ErrorCode::kParse, "JSON with more than {} values", kMaxValues);
  }
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  json::error_code error;
  auto value = json::parse(text.substr(begin, end - begin + 1), error, {}, options);
  if (error) {
    return fail(ErrorCode::kParse, "JSON: {}", error.message());
  }
  return value;
}

/// A key that identifies a GPU. A serial number is that of the board, which can hold several GPUs,
/// but partitions of one GPU share it.
std::string identity(const Entry& entry) {
  if (entry.partition && !entry.serial.empty()) {
    return "serial " + entry.serial;
  }
  const auto address = parse_pci_address(entry.address);
  if (!address) {
    return fmt::format("serial {} {}", entry.serial, entry.serial.empty() ? entry.order : 0);
  }
  if (entry.partition) {  // partitions differ in the function
    return fmt::format("pci {}:{}:{}", address->domain, address->bus, address->device);
  }
  return fmt::format("serial {} pci {}", entry.serial, to_string(*address));
}

/// Entries in their order, each with its label `index`.
std::vector<Device> make_devices(const std::vector<std::pair<Entry, std::uint64_t>>& entries) {
  std::vector<Device> devices;
  std::map<std::string, std::size_t> known;
  for (const auto& [entry, index] : entries) {
    const auto [at, fresh] = known.try_emplace(identity(entry), devices.size());
    if (fresh) {
      const auto address = parse_pci_address(entry.address);
      Device device;
      device.vendor = Vendor::kAmd;
      device.position = devices.size();
      device.path_name = address ? to_lower(entry.address) : std::string();
      device.address = address;
      device.index = entry.partition ? std::string() : std::to_string(index);
      device.uuid = !entry.serial.empty() || !address ? entry.serial : device.path_name;
      device.name = entry.name;
      device.split = entry.partition;
      devices.push_back(std::move(device));
    }
    Device& device = devices[at->second];
    if (entry.partition && device.split) {
      const std::uint64_t number = entry.partition_id.value_or(device.instances.size());
      device.instances.push_back(
          {.index = std::to_string(index), .number = number, .uuid = {}, .gpu_instance = number});
    }
  }
  return devices;
}

/// The array of entries: the document itself or, from newer tools, a member of it.
const json::array* entries_of(const json::value& document) {
  if (const auto* array = document.if_array()) {
    return array;
  }
  if (const auto* object = document.if_object()) {
    for (const auto& [key, value] : *object) {
      const auto* array = value.if_array();
      if (array != nullptr && !array->empty() && member(&array->front(), "gpu") != nullptr) {
        return array;
      }
    }
  }
  return nullptr;
}

Result<Entry> parse_amd_entry(const json::value& value) {
  const std::string number = text_of(member(&value, "gpu"));
  const auto order = parse_int(number);
  if (!order) {
    return fail(ErrorCode::kParse, "member gpu: expected a number, got '{}'", printable(number));
  }
  const auto* partition = member(&value, "partition");
  std::string mode = text_of(member(partition, "compute_partition"));
  if (mode.empty()) {
    mode = text_of(member(partition, "accelerator_partition"));  // the name since ROCm 6.4
  }
  const auto* board = member(&value, "board");
  return Entry{.order = *order,
               .serial = text_of(member(board, "product_serial")),
               .address = text_of(member(member(&value, "bus"), "bdf")),
               .name = text_of(member(board, "product_name")),
               .partition = is_partition_mode(mode),
               .partition_id = parse_int(text_of(member(partition, "partition_id")))};
}

void add_cards(const json::value& value, std::vector<Entry>& entries) {
  const auto* object = value.if_object();
  if (object == nullptr) {
    return;
  }
  for (const auto& [key, card] : *object) {
    constexpr std::string_view kCard = "card";
    const std::string_view name(key.data(), key.size());
    const auto order =
        name.starts_with(kCard) ? parse_int(name.substr(kCard.size())) : std::nullopt;
    if (!order || !card.is_object() || entries.size() == kMaxEntries) {
      continue;
    }
    entries.push_back({.order = *order,
                       .serial = text_of(member(&card, "Serial Number")),
                       .address = text_of(member(&card, "PCI Bus")),
                       .name = text_of(member(&card, "Card Vendor")),
                       .partition = is_partition_mode(text_of(member(&card, "Compute Partition"))),
                       .partition_id = {}});
  }
}

void sort_by_order(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.order < b.order; });
}

}  // namespace

Result<std::vector<Device>> parse_amd_smi(std::string_view text) {
  CEEMS_TRY(document, parse(text));
  const auto* array = entries_of(document);
  if (array == nullptr || array->size() > kMaxEntries) {
    return fail(ErrorCode::kParse, "expected a list of GPUs with at most {} entries", kMaxEntries);
  }
  std::vector<Entry> entries;
  for (const auto& value : *array) {
    CEEMS_TRY(entry, parse_amd_entry(value));
    entries.push_back(std::move(entry));
  }
  sort_by_order(entries);
  std::vector<std::pair<Entry, std::uint64_t>> numbered;
  for (Entry& entry : entries) {
    const std::uint64_t index = entry.order;
    numbered.emplace_back(std::move(entry), index);
  }
  return make_devices(numbered);
}

Result<std::vector<Device>> parse_rocm_smi(std::string_view text) {
  CEEMS_TRY(document, parse(text));
  std::vector<Entry> entries;
  if (const auto* array = document.if_array()) {
    for (const auto& value : *array) {
      add_cards(value, entries);
    }
  } else {
    add_cards(document, entries);
  }
  if (entries.empty()) {
    return fail(ErrorCode::kParse, "JSON without a member card<N>");
  }
  sort_by_order(entries);
  std::vector<std::pair<Entry, std::uint64_t>> numbered;
  for (Entry& entry : entries) {
    const std::uint64_t index = numbered.size();
    numbered.emplace_back(std::move(entry), index);
  }
  return make_devices(numbered);
}

}  // namespace ceems::exporter::gpu
