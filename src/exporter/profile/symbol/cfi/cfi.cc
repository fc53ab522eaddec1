#include "exporter/profile/symbol/cfi/cfi.h"

#include <algorithm>
#include <utility>

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxCies = 4096;   // linkers merge equal ones; libstdc++ has 5
constexpr std::uint8_t kOmitted = 0xFF;  // DW_EH_PE_omit

}  // namespace

std::optional<CfiReader::Entry> CfiReader::entry_at(std::size_t offset) const {
  ByteReader reader(section_.bytes, offset);
  std::uint64_t length = reader.u32();
  const bool wide = length == 0xFFFFFFFFU;
  if (wide) {
    length = reader.u64();
  }
  if (!reader.good() || length > reader.left()) {
    return std::nullopt;
  }
  Entry entry;
  entry.start = reader.offset();
  entry.end = entry.start + static_cast<std::size_t>(length);
  if (length == 0) {
    return entry;
  }
  // In .eh_frame the reference has 4 bytes even if the length has 8, and counts backwards from
  // itself.
  const bool wide_id = wide && section_.is_debug_frame;
  const std::uint64_t id = wide_id ? reader.u64() : reader.u32();
  entry.body = reader.offset();
  if (!reader.good() || entry.body > entry.end) {
    return std::nullopt;
  }
  if (section_.is_debug_frame) {
    entry.is_cie = id == (wide_id ? ~std::uint64_t{0} : 0xFFFFFFFFU);
    entry.cie = static_cast<std::size_t>(id);
  } else {
    entry.is_cie = id == 0;
    entry.cie = entry.start - static_cast<std::size_t>(id);  // a wrong one lies outside
  }
  return entry;
}

std::optional<std::uint64_t> CfiReader::pointer(ByteReader& reader, std::uint8_t encoding) const {
  const std::uint64_t position = section_.address + reader.offset();
  std::uint64_t value = 0;
  switch (encoding & 0x0FU) {  // DW_EH_PE_*: the format
    case 0x00:
    case 0x04:
    case 0x0C:
      value = reader.u64();
      break;
    case 0x01:
      value = reader.uleb();
      break;
    case 0x02:
      value = reader.u16();
      break;
    case 0x03:
      value = reader.u32();
      break;
    case 0x09:
      value = static_cast<std::uint64_t>(reader.sleb());
      break;
    case 0x0A:
      value = static_cast<std::uint64_t>(
          static_cast<std::int64_t>(static_cast<std::int16_t>(reader.u16())));
      break;
    case 0x0B:
      value = static_cast<std::uint64_t>(
          static_cast<std::int64_t>(static_cast<std::int32_t>(reader.u32())));
      break;
    default:
      return std::nullopt;
  }
  if (!reader.good()) {
    return std::nullopt;
  }
  switch (encoding & 0xF0U) {  // how the value is meant; 0x80 would be a pointer in memory
    case 0x00:
      return value;
    case 0x10:
      return value + position;
    default:
      return std::nullopt;
  }
}

bool CfiReader::read_augmentation(ByteReader& reader,
                                  std::string_view augmentation,
                                  Cie& cie) const {
  if (augmentation.empty()) {
    return true;
  }
  if (!augmentation.starts_with('z')) {
    return false;  // without a size, unknown ones cannot be skipped
  }
  cie.has_augmentation_data = true;
  const std::string_view bytes = reader.take(reader.uleb());
  ByteReader data(bytes);
  for (const char kind : augmentation.substr(1)) {
    if (kind == 'R') {
      cie.pointer_encoding = data.u8();
    } else if (kind == 'L') {
      data.u8();
    } else if (kind == 'P') {
      const std::uint8_t encoding = data.u8();
      if (encoding != kOmitted && !pointer(data, encoding & 0x0FU)) {
        return false;
      }
    } else if (kind != 'S' && kind != 'B' && kind != 'G') {
      return false;
    }
  }
  return data.good() && reader.good();
}

Cie CfiReader::read_cie(std::size_t offset) const {
  Cie cie;
  const auto entry = entry_at(offset);
  if (!entry || !entry->is_cie) {
    return cie;
  }
  ByteReader reader(section_.bytes.substr(0, entry->end), entry->body);
  const unsigned version = reader.u8();
  const std::string_view augmentation = reader.text();
  if (version != 1 && version != 3 && version != 4) {
    return cie;
  }
  if (version == 4 && (reader.u8() != 8 || reader.u8() != 0)) {
    return cie;  // size of an address and of a segment selector
  }
  cie.code_align = reader.uleb();
  cie.data_align = reader.sleb();
  const std::uint64_t return_register = version == 1 ? reader.u8() : reader.uleb();
  if (!reader.good() || return_register != kReturnAddress ||
      !read_augmentation(reader, augmentation, cie)) {
    return cie;
  }
  CfiInterpreter interpreter(cie, cie.initial);
  std::uint64_t advance = 0;
  while (!reader.at_end()) {
    if (interpreter.step(reader, advance) != CfiInterpreter::Step::kDone) {
      return cie;
    }
  }
  cie.initial = interpreter.state();
  cie.good = reader.good();
  return cie;
}

const Cie* CfiReader::cie_at(std::size_t offset) {
  const auto place =
      std::ranges::lower_bound(cies_, offset, {}, [](const auto& item) { return item.first; });
  if (place != cies_.end() && place->first == offset) {
    return place->second.good ? &place->second : nullptr;
  }
  if (cies_.size() == kMaxCies) {
    return nullptr;
  }
  const auto added = cies_.insert(place, {offset, read_cie(offset)});
  return added->second.good ? &added->second : nullptr;
}

bool CfiReader::read_range(const Cie& cie, ByteReader& reader, Function& function) const {
  const auto begin = pointer(reader, cie.pointer_encoding);
  const auto size = pointer(reader, cie.pointer_encoding & 0x0FU);
  if (!begin || !size) {
    return false;
  }
  function.begin = *begin;
  function.end = *begin + *size;
  return function.end >= function.begin;
}

std::size_t CfiReader::each_function(const std::function<bool(const Function&)>& found) {
  std::size_t malformed = 0;
  std::size_t offset = 0;
  while (offset < section_.bytes.size()) {
    const auto entry = entry_at(offset);
    if (!entry) {
      return malformed + 1;
    }
    const std::size_t start = std::exchange(offset, entry->end);
    if (entry->start == entry->end) {
      if (!section_.has_end) {
        break;
      }
      continue;
    }
    if (entry->is_cie) {
      continue;
    }
    Function function;
    function.entry = start;
    const Cie* cie = cie_at(entry->cie);
    ByteReader reader(section_.bytes.substr(0, entry->end), entry->body);
    if (cie == nullptr || !read_range(*cie, reader, function)) {
      ++malformed;
    } else if (function.end > function.begin && !found(function)) {
      break;
    }
  }
  return malformed;
}

bool CfiReader::interpret(
    const Function& function,
    const std::function<void(std::uint64_t address, const CfiState& state)>& row) {
  const auto entry = entry_at(function.entry);
  if (!entry) {
    return false;
  }
  const Cie* cie = cie_at(entry->cie);
  if (cie == nullptr) {
    return false;
  }
  ByteReader reader(section_.bytes.substr(0, entry->end), entry->body);
  Function same;
  read_range(*cie, reader, same);
  if (cie->has_augmentation_data) {
    reader.skip(reader.uleb());
  }
  CfiInterpreter interpreter(*cie, cie->initial);
  std::uint64_t address = function.begin;
  while (!reader.at_end()) {
    std::uint64_t advance = 0;
    const auto step = interpreter.step(reader, advance);
    if (step == CfiInterpreter::Step::kBroken || !reader.good()) {
      row(address, CfiState{});
      return false;
    }
    if (step == CfiInterpreter::Step::kDone) {
      continue;
    }
    std::uint64_t next = address + advance;
    if (step == CfiInterpreter::Step::kSetLocation) {
      next = pointer(reader, cie->pointer_encoding).value_or(0);
    }
    if (next < address || next > function.end) {
      row(address, interpreter.state());
      return false;
    }
    if (next > address) {
      row(address, interpreter.state());
      address = next;
    }
  }
  row(address, interpreter.state());
  return reader.good();
}

}  // namespace ceems::exporter::profile
