#include <dlfcn.h>
#include <lzma.h>

#include <algorithm>
#include <string>
#include <utility>

#include "exporter/profile/symbol/names/symbols.h"

namespace ceems::exporter::profile {
namespace {

constexpr std::uint64_t kMaxCompressed = 8U << 20U;
constexpr std::size_t kMaxContent = 32U << 20U;
constexpr std::uint64_t kMaxMemory = 32U << 20U;  ///< of the decoder; xz -6 needs 9 MiB
constexpr std::size_t kStep = 256U << 10U;

/// The functions of liblzma. Few binaries need it, so it is loaded when the first one does.
struct LzmaLibrary {
  decltype(&::lzma_stream_decoder) stream_decoder = nullptr;
  decltype(&::lzma_code) code = nullptr;
  decltype(&::lzma_end) end = nullptr;

  [[nodiscard]] bool complete() const {
    return stream_decoder != nullptr && code != nullptr && end != nullptr;
  }
};

LzmaLibrary load() {
  LzmaLibrary library;
  void* const handle = dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) {
    // NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    library.stream_decoder =
        reinterpret_cast<decltype(library.stream_decoder)>(dlsym(handle, "lzma_stream_decoder"));
    library.code = reinterpret_cast<decltype(library.code)>(dlsym(handle, "lzma_code"));
    library.end = reinterpret_cast<decltype(library.end)>(dlsym(handle, "lzma_end"));
    // NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)
  }
  return library;
}

const LzmaLibrary& lzma() {
  static const LzmaLibrary kLibrary = load();
  return kLibrary;
}

Result<std::string> decompressed(const std::string& compressed) {
  if (!lzma().complete()) {
    return fail(ErrorCode::kNotFound, "liblzma.so.5 cannot be loaded");
  }
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma().stream_decoder(&stream, kMaxMemory, 0) != LZMA_OK) {
    return fail(ErrorCode::kInternal, "liblzma cannot be initialised");
  }
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): liblzma's bytes
  stream.next_in = reinterpret_cast<const std::uint8_t*>(compressed.data());
  stream.avail_in = compressed.size();
  std::string out;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK && out.size() < kMaxContent) {
    const std::size_t used = out.size();
    out.resize(used + kStep);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): liblzma's bytes
    stream.next_out = reinterpret_cast<std::uint8_t*>(out.data() + used);
    stream.avail_out = kStep;
    status = lzma().code(&stream, LZMA_FINISH);
    out.resize(out.size() - stream.avail_out);
  }
  lzma().end(&stream);
  if (status != LZMA_STREAM_END) {
    return fail(ErrorCode::kParse, ".gnu_debugdata cannot be decompressed");
  }
  return out;
}

}  // namespace

Result<ElfFile> mini_debug_info(const ElfFile& elf) {
  const Section* section = elf.find_section(".gnu_debugdata");
  if (section == nullptr) {
    return fail(ErrorCode::kNotFound, "no .gnu_debugdata");
  }
  CEEMS_TRY(compressed, elf.content(*section, kMaxCompressed));
  CEEMS_TRY(content, decompressed(compressed));
  return ElfFile::read(BinaryFile::of_bytes(std::move(content)));
}

}  // namespace ceems::exporter::profile
