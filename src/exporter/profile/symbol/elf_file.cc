#include "exporter/profile/symbol/elf_file.h"

#include <elf.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "exporter/profile/symbol/byte_reader.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxSegments = 256;
constexpr std::uint64_t kMaxSections = 20'000;
constexpr std::uint64_t kMaxSectionNames = 1U << 20U;
constexpr std::size_t kMaxSectionName = 128;
constexpr std::uint64_t kMaxNotes = 64U << 10U;
constexpr std::size_t kMaxBuildId = 64;
constexpr std::uint64_t kMaxDebugLink = 4096;
constexpr std::uint64_t kOldZlibHeader = 12;  ///< "ZLIB" and the size, big-endian

std::unexpected<Error> malformed(std::string_view what) {
  return fail(ErrorCode::kParse, "malformed ELF file: {}", what);
}

Section section_header(ByteReader& reader, std::uint32_t& name) {
  Section section;
  name = reader.u32();
  section.type = reader.u32();
  section.flags = reader.u64();
  section.address = reader.u64();
  section.offset = reader.u64();
  section.size = reader.u64();
  section.link = reader.u32();
  reader.skip(sizeof(Elf64_Shdr) - 44);
  return section;
}

/// The build id in a series of notes; empty if there is none.
std::string build_id_of(std::string_view notes) {
  ByteReader reader(notes);
  while (reader.good() && reader.left() >= sizeof(Elf64_Nhdr)) {
    const std::uint32_t name_size = reader.u32();
    const std::uint32_t content_size = reader.u32();
    const std::uint32_t type = reader.u32();
    const std::string_view name = reader.take(name_size);
    reader.skip((4 - name_size % 4) % 4);
    const std::string_view content = reader.take(content_size);
    if (reader.good() && type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4) &&
        !content.empty() && content.size() <= kMaxBuildId) {
      std::string text;
      for (const char byte : content) {
        text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      }
      return text;
    }
    reader.skip(std::min<std::uint64_t>((4 - content_size % 4) % 4, reader.left()));
  }
  return {};
}

Result<std::string> inflated(std::string_view compressed,
                             std::uint64_t size,
                             std::uint64_t max_size) {
  if (size > max_size) {
    return fail(ErrorCode::kInvalidArgument, "a section of {} bytes, larger than {}", size,
                max_size);
  }
  std::string out(static_cast<std::size_t>(size), '\0');
  uLongf written = size;
  // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): zlib's bytes
  const int status =
      ::uncompress(reinterpret_cast<Bytef*>(out.data()), &written,
                   reinterpret_cast<const Bytef*>(compressed.data()), compressed.size());
  // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  if (status != Z_OK || written != size) {
    return malformed("a section cannot be decompressed");
  }
  return out;
}

}  // namespace

Result<ElfFile> ElfFile::read(BinaryFile file) {
  ElfFile elf(std::move(file));
  CEEMS_TRY(elf.read_header());
  elf.find_build_id();
  return elf;
}

Result<> ElfFile::read_header() {
  const auto header = file_.read(0, sizeof(Elf64_Ehdr));
  if (!header || !header->starts_with(ELFMAG)) {
    return malformed("no ELF header");
  }
  if (header->at(EI_CLASS) != ELFCLASS64 || header->at(EI_DATA) != ELFDATA2LSB) {
    return fail(ErrorCode::kInvalidArgument, "not a 64-bit little-endian ELF file");
  }
  ByteReader reader(*header, EI_NIDENT);
  reader.u16();  // the type
  machine_ = reader.u16();
  reader.skip(12);  // version, entry point
  const std::uint64_t segment_offset = reader.u64();
  const std::uint64_t section_offset = reader.u64();
  reader.skip(6);  // flags, size of this header
  const std::uint16_t segment_size = reader.u16();
  const std::uint16_t segment_count = reader.u16();
  const std::uint16_t section_size = reader.u16();
  const std::uint16_t section_count = reader.u16();
  const std::uint16_t section_names = reader.u16();
  if (segment_count > kMaxSegments || (segment_count != 0 && segment_size != sizeof(Elf64_Phdr))) {
    return malformed("program headers");
  }
  const auto table = file_.read(segment_offset, segment_count * sizeof(Elf64_Phdr));
  if (!table) {
    return malformed("program headers");
  }
  ByteReader segments(*table);
  base_ = std::numeric_limits<std::uint64_t>::max();
  for (unsigned i = 0; i < segment_count; ++i) {
    Segment segment;
    segment.type = segments.u32();
    segment.flags = segments.u32();
    segment.offset = segments.u64();
    segment.address = segments.u64();
    segments.skip(8);  // physical address
    segment.file_size = segments.u64();
    segments.skip(16);  // size in memory, alignment
    segments_.push_back(segment);
    if (segment.type == PT_LOAD) {
      base_ = std::min(base_, segment.address);
    }
  }
  if (base_ == std::numeric_limits<std::uint64_t>::max()) {
    base_ = 0;
  }
  if (section_offset != 0 && section_size == sizeof(Elf64_Shdr)) {
    read_sections(section_offset, section_count, section_names);
  }
  return {};
}

void ElfFile::read_sections(std::uint64_t offset, std::uint64_t count, std::uint32_t names) {
  if (count == 0 || names == SHN_XINDEX) {  // then the first section has the real numbers
    const auto first = file_.read(offset, sizeof(Elf64_Shdr));
    if (!first) {
      return;
    }
    ByteReader reader(*first);
    std::uint32_t name = 0;
    const Section section = section_header(reader, name);
    count = count == 0 ? section.size : count;
    names = names == SHN_XINDEX ? section.link : names;
  }
  if (count == 0 || count > kMaxSections || names >= count) {
    return;
  }
  const auto table = file_.read(offset, count * sizeof(Elf64_Shdr));
  if (!table) {
    return;
  }
  std::vector<Section> sections;
  std::vector<std::uint32_t> name_offsets(static_cast<std::size_t>(count));
  ByteReader reader(*table);
  sections.reserve(name_offsets.size());
  for (std::uint32_t& name : name_offsets) {
    sections.push_back(section_header(reader, name));
  }
  const Section& name_table = sections[names];
  const auto texts = file_.read(name_table.offset, std::min(name_table.size, kMaxSectionNames));
  if (!texts) {
    return;
  }
  for (std::size_t i = 0; i < sections.size(); ++i) {
    sections[i].name = ByteReader(*texts, name_offsets[i]).text().substr(0, kMaxSectionName);
  }
  sections_ = std::move(sections);
}

void ElfFile::find_build_id() {
  const auto try_notes = [this](std::uint64_t offset, std::uint64_t size) {
    if (build_id_.empty()) {
      const auto notes = file_.read(offset, std::min(size, kMaxNotes));
      build_id_ = notes ? build_id_of(*notes) : std::string{};
    }
  };
  for (const Segment& segment : segments_) {
    if (segment.type == PT_NOTE) {
      try_notes(segment.offset, segment.file_size);
    }
  }
  // A separate debug file keeps its notes in a section only.
  if (const Section* notes = find_section(".note.gnu.build-id"); notes != nullptr) {
    try_notes(notes->offset, notes->size);
  }
}

const Section* ElfFile::find_section(std::string_view name) const {
  const auto found = std::ranges::find_if(sections_, [name](const Section& section) {
    return section.name == name && section.type != SHT_NOBITS && section.type != SHT_NULL;
  });
  return found == sections_.end() ? nullptr : &*found;
}

std::optional<std::uint64_t> code_address_in(const std::vector<Segment>& segments,
                                             std::uint64_t file_offset) {
  // The kernel maps whole pages, so a mapping begins before its segment unless that is aligned.
  constexpr std::uint64_t kPage = 4095;
  for (const Segment& segment : segments) {
    const std::uint64_t start = segment.offset & ~kPage;
    if (segment.type == PT_LOAD && (segment.flags & PF_X) != 0 && file_offset >= start &&
        file_offset - start < segment.file_size + (segment.offset - start)) {
      return file_offset - segment.offset + segment.address;
    }
  }
  return std::nullopt;
}

Result<std::string> ElfFile::content(const Section& section, std::uint64_t max_size) const {
  if (section.size > max_size) {
    return fail(ErrorCode::kInvalidArgument, "section {} has {} bytes, more than {}", section.name,
                section.size, max_size);
  }
  CEEMS_TRY(bytes, file_.read(section.offset, section.size));
  if ((section.flags & SHF_COMPRESSED) != 0) {
    ByteReader reader(bytes);
    const std::uint32_t type = reader.u32();
    reader.skip(4);
    const std::uint64_t size = reader.u64();
    reader.skip(8);  // alignment
    if (!reader.good() || type != ELFCOMPRESS_ZLIB) {
      return malformed("a section is compressed in an unknown way");
    }
    return inflated(std::string_view(bytes).substr(reader.offset()), size, max_size);
  }
  if (section.name.starts_with(".zdebug") && bytes.starts_with("ZLIB") &&
      bytes.size() >= kOldZlibHeader) {
    const std::uint64_t size = __builtin_bswap64(ByteReader(bytes, 4).u64());
    return inflated(std::string_view(bytes).substr(kOldZlibHeader), size, max_size);
  }
  return bytes;
}

Result<std::string> ElfFile::content_at(std::uint64_t address, std::uint64_t max_size) const {
  for (const Segment& segment : segments_) {
    if (segment.type == PT_LOAD && address >= segment.address &&
        address - segment.address < segment.file_size) {
      const std::uint64_t skipped = address - segment.address;
      return file_.read(segment.offset + skipped, std::min(segment.file_size - skipped, max_size));
    }
  }
  return fail(ErrorCode::kNotFound, "no segment holds the address {:#x}", address);
}

std::optional<DebugLink> ElfFile::debug_link() const {
  const Section* section = find_section(".gnu_debuglink");
  if (section == nullptr) {
    return std::nullopt;
  }
  const auto bytes = content(*section, kMaxDebugLink);
  if (!bytes) {
    return std::nullopt;
  }
  ByteReader reader(*bytes);
  DebugLink link;
  link.name = reader.text();
  reader.skip((4 - reader.offset() % 4) % 4);
  link.crc = reader.u32();
  // A name with a slash would lead out of the directories in which the file is looked for.
  if (!reader.good() || link.name.empty() || link.name.contains('/') || link.name == "." ||
      link.name == "..") {
    return std::nullopt;
  }
  return link;
}

}  // namespace ceems::exporter::profile
