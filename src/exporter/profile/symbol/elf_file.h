#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "exporter/profile/symbol/binary_file.h"

namespace ceems::exporter::profile {

/// A program header (elf(5)).
struct Segment {
  std::uint32_t type = 0;
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t file_size = 0;
};

struct Section {
  std::string name;
  std::uint32_t type = 0;
  std::uint32_t link = 0;
  std::uint64_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// The address at which an offset of a file with these segments is loaded and executable, before
/// the load bias; nothing if it is not code.
std::optional<std::uint64_t> code_address_in(const std::vector<Segment>& segments,
                                             std::uint64_t file_offset);

struct DebugLink {
  std::string name;
  std::uint32_t crc = 0;
};

/// The headers of a 64-bit little-endian ELF file, read by hand with every offset checked, because
/// the file belongs to a job. Only what is asked for is read. Safe for concurrent use.
class ElfFile {
 public:
  /// kParse if it is malformed or has more than 256 segments or 20,000 sections, kInvalidArgument
  /// if it is of another class or byte order.
  static Result<ElfFile> read(BinaryFile file);

  [[nodiscard]] const BinaryFile& file() const { return file_; }
  [[nodiscard]] std::uint16_t machine() const { return machine_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  /// None if the table of sections is missing or malformed, which programs run without.
  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  /// The first section of that name with content in the file; null if there is none.
  [[nodiscard]] const Section* find_section(std::string_view name) const;

  /// The lowest address of a PT_LOAD segment. Offsets in tables count from it.
  [[nodiscard]] std::uint64_t base() const { return base_; }
  /// code_address_in() its segments.
  [[nodiscard]] std::optional<std::uint64_t> code_address(std::uint64_t file_offset) const {
    return code_address_in(segments_, file_offset);
  }
  /// The content of a section, decompressed. kInvalidArgument if it is larger than `max_size`.
  [[nodiscard]] Result<std::string> content(const Section& section, std::uint64_t max_size) const;
  /// The bytes at an address, up to the end of its segment in the file or `max_size`.
  [[nodiscard]] Result<std::string> content_at(std::uint64_t address, std::uint64_t max_size) const;

  /// The build id in lower-case hexadecimal; empty if there is none.
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  /// The separate debug file that .gnu_debuglink names.
  [[nodiscard]] std::optional<DebugLink> debug_link() const;

 private:
  explicit ElfFile(BinaryFile file) : file_(std::move(file)) {}
  Result<> read_header();
  void read_sections(std::uint64_t offset, std::uint64_t count, std::uint32_t names);
  void find_build_id();

  BinaryFile file_;
  std::uint16_t machine_ = 0;
  std::uint64_t base_ = 0;
  std::vector<Segment> segments_;
  std::vector<Section> sections_;
  std::string build_id_;
};

}  // namespace ceems::exporter::profile
