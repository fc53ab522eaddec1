#include "exporter/profile/symbol/binary_cache.h"

#include <elf.h>
#include <sys/auxv.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::size_t kMaxPlaces = 16;  ///< of one binary

Binary make_binary(const ElfFile& elf,
                   const std::string& path,
                   const FileOpener& open,
                   DebugFileSource* source) {
  return {.segments = elf.segments(),
          .base = elf.base(),
          .build_id = elf.build_id(),
          .symbols = read_symbols(elf, path, open, {}, source)};
}

std::size_t bytes_of(const Binary& binary) {
  return sizeof(Binary) + binary.symbols.memory_bytes() +
         binary.segments.capacity() * sizeof(Segment);
}

/// The vDSO of this process, which is that of all 64-bit processes.
std::optional<Binary> read_vdso() {
  const unsigned long address = ::getauxval(AT_SYSINFO_EHDR);
  const auto maps = read_maps({}, ::getpid());
  const Mapping* mapping = address == 0 || !maps ? nullptr : maps->find(address);
  if (mapping == nullptr || mapping->kind != Mapping::Kind::kVdso) {
    return std::nullopt;
  }
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast,performance-no-int-to-ptr): memory of
  // the kernel, always mapped
  std::string bytes(reinterpret_cast<const char*>(mapping->start), mapping->end - mapping->start);
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast,performance-no-int-to-ptr)
  const auto elf = ElfFile::read(BinaryFile::of_bytes(std::move(bytes)));
  if (!elf) {
    return std::nullopt;
  }
  const auto open = [](const std::string& path) -> Result<BinaryFile> {
    return fail(ErrorCode::kNotFound, "{}", path);
  };
  return make_binary(*elf, "[vdso]", open, nullptr);
}

}  // namespace

Result<BinaryFile> open_binary(const host::Paths& paths, pid_t pid, const Mapping& mapping) {
  if (mapping.kind != Mapping::Kind::kFile) {
    return fail(ErrorCode::kNotFound, "the mapping has no file");
  }
  auto mapped = BinaryFile::open_mapping(paths, pid, mapping.start, mapping.end);
  if (mapped || mapping.deleted) {
    return mapped;
  }
  return BinaryFile::open_in_process(paths, pid, mapping.path);
}

std::optional<std::uint32_t> Binary::offset_of(const Mapping& mapping,
                                               std::uint64_t address) const {
  const auto code = code_address_in(segments, mapping.offset + (address - mapping.start));
  if (!code || *code < base || *code - base > std::numeric_limits<std::uint32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::uint32_t>(*code - base);
}

BinaryCache::BinaryCache(host::Paths paths,
                         const BinaryCacheLimits& limits,
                         DebugFileSource* source)
    : paths_(std::move(paths)), limits_(limits), source_(source) {}

Result<std::shared_ptr<const Binary>> BinaryCache::find(pid_t pid, const Mapping& mapping) {
  CEEMS_TRY(file, open_binary(paths_, pid, mapping));
  const FileIdentity identity = file.identity();
  const auto same_file = std::ranges::find_if(entries_, [&](const Entry& entry) {
    return std::ranges::find(entry.files, identity) != entry.files.end();
  });
  if (same_file != entries_.end()) {
    return use(same_file);
  }
  const std::uint64_t owner = file.owner();
  if (loads_ == limits_.loads_per_round) {
    return fail(ErrorCode::kUnavailable, "too many binaries in this round");
  }
  ++loads_;
  CEEMS_TRY(elf, ElfFile::read(std::move(file)));
  const std::string key = elf.build_id().empty()
                              ? std::string{}
                              : fmt::format("{} {} {}", elf.build_id(), owner, identity.size);
  const auto same_build = std::ranges::find_if(
      entries_, [&](const Entry& entry) { return !key.empty() && entry.build_id == key; });
  if (same_build != entries_.end()) {
    if (same_build->files.size() < kMaxPlaces) {
      same_build->files.push_back(identity);
    }
    return use(same_build);
  }
  const auto open = [&](const std::string& path) -> Result<BinaryFile> {
    auto debug = BinaryFile::open_in_process(paths_, pid, path);
    if (debug && debug->owner() != 0 && debug->owner() != owner) {
      return fail(ErrorCode::kPermissionDenied, "{} belongs to another user", path);
    }
    return debug;
  };
  auto binary = std::make_shared<const Binary>(make_binary(elf, mapping.path, open, source_));
  const std::size_t bytes = bytes_of(*binary);
  entries_.push_front({.files = {identity},
                       .build_id = key,
                       .binary = std::move(binary),
                       .bytes = bytes,
                       .used = round_});
  memory_bytes_ += bytes;
  auto result = entries_.front().binary;
  evict();
  return result;
}

std::shared_ptr<const Binary> BinaryCache::use(Entries::iterator entry) {
  entry->used = round_;
  entries_.splice(entries_.begin(), entries_, entry);
  return entry->binary;
}

void BinaryCache::evict() {
  std::size_t with_id = 0;
  std::size_t without_id = 0;
  std::size_t bytes = 0;
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    std::size_t& count = entry->build_id.empty() ? without_id : with_id;
    const std::size_t limit = entry->build_id.empty() ? limits_.by_file : limits_.by_build_id;
    ++count;
    bytes += entry->bytes;
    const bool recent = round_ - entry->used < limits_.rounds;
    // The newest stays in any case: it is about to be used.
    if (entry != entries_.begin() && ((count > limit && !recent) || bytes > limits_.memory_bytes)) {
      bytes -= entry->bytes;
      memory_bytes_ -= entry->bytes;
      entry = entries_.erase(entry);
    } else {
      ++entry;
    }
  }
}

const Binary* BinaryCache::vdso() {
  if (!vdso_read_) {
    vdso_ = read_vdso();
    vdso_read_ = true;
  }
  return vdso_ ? &*vdso_ : nullptr;
}

bool BinaryCache::next_round() {
  ++round_;
  loads_ = 0;
  bool more = false;
  if (source_ != nullptr) {
    for (const std::string& id : source_->arrived()) {
      std::erase_if(entries_, [&](const Entry& entry) {
        if (entry.binary->build_id != id) {
          return false;
        }
        memory_bytes_ -= entry.bytes;
        more = true;
        return true;
      });
    }
  }
  evict();
  return more;
}

}  // namespace ceems::exporter::profile
