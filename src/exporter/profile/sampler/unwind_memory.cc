#include "exporter/profile/sampler/unwind_memory.h"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>
#include <utility>

#include "exporter/profile/symbol/binary_cache.h"
#include "exporter/profile/symbol/elf_file.h"

namespace ceems::exporter::profile {
namespace {

/// The identity of the kernel's own code, which is in every process.
constexpr FileIdentity kVdso{.device = std::numeric_limits<std::uint64_t>::max(), .inode = 1};

/// Of addresses in a mapping to a pc in the table of its binary; nothing where it is not code.
std::optional<std::uint64_t> bias_of(const Mapping& mapping,
                                     const std::vector<Segment>& segments,
                                     std::uint64_t base) {
  const auto address = code_address_in(segments, mapping.offset);
  if (!address) {
    return std::nullopt;
  }
  return mapping.start - (*address - base);
}

stack_python python_of(const PythonProcess& process) {
  const PythonLayout& layout = process.layout;
  return {.interpreters = process.interpreters,
          .interpreter_next = layout.interpreter_next,
          .interpreter_threads = layout.interpreter_threads,
          .thread_next = layout.thread_next,
          .thread_id = layout.thread_id,
          .thread_frame = layout.thread_frame,
          .holder = layout.holder ? 1U : 0U,
          .holder_frame = layout.holder_frame,
          .frame_code = layout.frame_code,
          .frame_previous = layout.frame_previous,
          .frame_entry = layout.frame_entry,
          .entry = static_cast<stack_u32>(layout.entry),
          .code_name = layout.code_name,
          .code_first_line = layout.code_first_line,
          .unused = 0};
}

std::string own_vdso() {
  const auto maps = read_maps(host::Paths{}, ::getpid());
  if (!maps) {
    return {};
  }
  for (const Mapping& mapping : maps->mappings) {
    if (mapping.kind == Mapping::Kind::kVdso) {
      // NOLINTNEXTLINE(*-reinterpret-cast,*-int-to-ptr): mapped into every process by the kernel
      return {reinterpret_cast<const char*>(mapping.start), mapping.end - mapping.start};
    }
  }
  return {};
}

}  // namespace

UnwindCells pack(std::span<const UnwindRow> rows) {
  UnwindCells table{.cells = {}, .rows = rows.size()};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers;
  std::vector<stack_row> rules;
  table.cells.reserve(rows.size() + 64);
  for (const UnwindRow& row : rows) {
    const stack_rule rule{
        .cfa = row.cfa, .rbp = row.rbp, .rbp_offset = row.rbp_offset, .cfa_offset = row.cfa_offset};
    const auto next = static_cast<std::uint32_t>(rows.size() + rules.size());
    const auto [number, is_new] = numbers.try_emplace(std::bit_cast<std::uint64_t>(rule), next);
    if (is_new) {
      rules.push_back(std::bit_cast<stack_row>(rule));
    }
    table.cells.push_back({.pc = row.pc, .rule = number->second});
  }
  table.cells.insert(table.cells.end(), rules.begin(), rules.end());
  return table;
}

stack_rule rule_at(const UnwindCells& table, std::size_t cell) {
  return std::bit_cast<stack_rule>(table.cells.at(cell));
}

UnwindMemory::UnwindMemory(host::Paths paths,
                           UnwindStore& store,
                           Python python,
                           std::size_t processes)
    : paths_(std::move(paths)), store_(store), find_(python), max_processes_(processes) {
  for (std::uint32_t index = kTables; index > 0; --index) {
    free_indices_.push_back(index - 1);
  }
}

Result<> UnwindMemory::describe(pid_t pid, const stack_image& image) {
  if (!processes_.contains(pid) && processes_.size() >= max_processes_) {
    forget_ended();
    if (processes_.size() >= max_processes_) {
      return fail(ErrorCode::kUnavailable, "too many processes");
    }
  }
  const auto maps = read_maps(paths_, pid);
  if (!maps) {
    forget(pid);
    return fail(maps.error());
  }
  Process process;
  std::vector<stack_mapping> mappings;
  for (const Mapping& mapping : maps->mappings) {
    stack_mapping entry{
        .begin = mapping.start, .end = mapping.end, .bias = 0, .table = 0, .rows = 0};
    if (const Table* const table = table_of(pid, mapping, process.tables)) {
      const auto bias = mapping.kind == Mapping::Kind::kVdso
                            ? std::optional(mapping.start)
                            : bias_of(mapping, table->segments, table->base);
      if (bias) {
        entry.bias = *bias;
        entry.table = table->index;
        entry.rows = table->rows;
        if (table->python && !process.python) {
          process.python = {.interpreters = *bias + table->python->interpreters,
                            .layout = table->python->layout,
                            .module = mapping.path};
        }
      }
    }
    mappings.push_back(entry);
  }
  const auto first = allocate(static_cast<std::uint32_t>(mappings.size()));
  Result<> done;
  if (!first) {
    done = fail(ErrorCode::kUnavailable, "too many mappings");
  } else {
    process.first = *first;
    process.count = static_cast<std::uint32_t>(mappings.size());
    done = store_.put_mappings(*first, mappings);
    if (done) {
      done = store_.put_process(
          pid, {.image = image,
                .first = process.first,
                .count = process.count,
                .python = process.python ? python_of(*process.python) : stack_python{}});
    }
    if (!done) {
      ranges_.erase(*first);
    }
  }
  if (!done) {
    release(process.tables);
    return done;
  }
  if (const auto old = processes_.find(pid); old != processes_.end()) {
    ranges_.erase(old->second.first);
    release(old->second.tables);
  }
  processes_.insert_or_assign(pid, std::move(process));
  return {};
}

const PythonProcess* UnwindMemory::python(pid_t pid) const {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) {
    return nullptr;
  }
  const auto& python = known->second.python;
  return python ? &*python : nullptr;
}

void UnwindMemory::forget(pid_t pid) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) {
    return;
  }
  store_.remove_process(pid);
  ranges_.erase(known->second.first);
  release(known->second.tables);
  processes_.erase(known);
}

void UnwindMemory::forget_ended() {
  std::vector<pid_t> ended;
  for (const auto& [pid, process] : processes_) {
    std::error_code error;
    if (!std::filesystem::exists(paths_.proc / std::to_string(pid), error)) {
      ended.push_back(pid);
    }
  }
  for (const pid_t pid : ended) {
    forget(pid);
  }
}

const UnwindMemory::Table* UnwindMemory::table_of(pid_t pid,
                                                  const Mapping& mapping,
                                                  std::vector<Key>& used) {
  if (mapping.kind == Mapping::Kind::kVdso) {
    return vdso_table(used);
  }
  if (mapping.kind != Mapping::Kind::kFile) {
    return nullptr;
  }
  auto file = open_binary(paths_, pid, mapping);
  if (!file) {
    return nullptr;
  }
  const Key key = file->identity();
  auto known = tables_.find(key);
  if (known == tables_.end()) {
    const auto elf = ElfFile::read(*std::move(file));
    if (!elf || add_table(key, *elf) == nullptr) {
      return nullptr;
    }
    known = tables_.find(key);
  }
  ++known->second.users;
  known->second.used = ++uses_;
  used.push_back(key);
  return known->second.rows == 0 ? nullptr : &known->second;
}

const UnwindMemory::Table* UnwindMemory::vdso_table(std::vector<Key>& used) {
  auto known = tables_.find(kVdso);
  if (known == tables_.end()) {
    std::string bytes = own_vdso();
    const auto elf = ElfFile::read(BinaryFile::of_bytes(std::move(bytes)));
    if (!elf || add_table(kVdso, *elf) == nullptr) {
      return nullptr;
    }
    known = tables_.find(kVdso);
  }
  ++known->second.users;
  known->second.used = ++uses_;
  used.push_back(kVdso);
  return known->second.rows == 0 ? nullptr : &known->second;
}

/// Null if there is no room. A binary without a table gets one without rows, so that it is not read
/// for every process.
UnwindMemory::Table* UnwindMemory::add_table(const Key& key, const ElfFile& elf) {
  auto built = build_unwind_table(elf);
  const UnwindCells packed = built ? pack(built->rows) : UnwindCells{};
  built = UnwindTable{};  // large ones take as much memory as all else
  const std::size_t bytes = packed.cells.size() * UnwindCells::kBytes;
  if (!make_room(bytes)) {
    return nullptr;
  }
  Table table{.index = free_indices_.back(),
              .rows = static_cast<std::uint32_t>(packed.rows),
              .bytes = bytes,
              .base = elf.base(),
              .segments = elf.segments(),
              .python = find_ == Python::kFind ? find_python(elf) : std::nullopt};
  if (packed.rows > 0 && !store_.put_table(table.index, packed)) {
    return nullptr;
  }
  free_indices_.pop_back();
  bytes_ += bytes;
  return &tables_.insert_or_assign(key, std::move(table)).first->second;
}

/// Removes tables that no process uses, the least recently used ones first.
bool UnwindMemory::make_room(std::size_t bytes) {
  while (free_indices_.empty() || bytes_ + bytes > kMaxBytes) {
    auto oldest = tables_.end();
    for (auto table = tables_.begin(); table != tables_.end(); ++table) {
      if (table->second.users == 0 &&
          (oldest == tables_.end() || table->second.used < oldest->second.used)) {
        oldest = table;
      }
    }
    if (oldest == tables_.end()) {
      return false;
    }
    if (oldest->second.rows > 0) {
      store_.remove_table(oldest->second.index);
    }
    bytes_ -= oldest->second.bytes;
    free_indices_.push_back(oldest->second.index);
    tables_.erase(oldest);
  }
  return true;
}

void UnwindMemory::release(const std::vector<Key>& tables) {
  for (const Key& key : tables) {
    if (const auto table = tables_.find(key); table != tables_.end() && table->second.users > 0) {
      --table->second.users;
    }
  }
}

/// The first free range of `count` places in the array of mappings.
std::optional<std::uint32_t> UnwindMemory::allocate(std::uint32_t count) {
  std::uint32_t at = 0;
  for (const auto& [first, size] : ranges_) {
    if (first - at >= std::max(count, 1U)) {
      break;
    }
    at = first + size;
  }
  if (at + std::max(count, 1U) > kMappings) {
    return std::nullopt;
  }
  ranges_.emplace(at, std::max(count, 1U));
  return at;
}

}  // namespace ceems::exporter::profile
