#include "os/startup_pages.h"

#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace ceems::os {
namespace {

using Address = std::uintptr_t;
using Segment = ElfW(Phdr);

struct Range {
  Address begin = 0;
  Address end = 0;  // not included
};

void* pointer(Address address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF headers hold addresses as numbers
  return reinterpret_cast<void*>(address);
}

/// The whole pages that hold the segment.
Range pages_of(const dl_phdr_info& object, const Segment& segment, Address page) {
  const Address begin = object.dlpi_addr + segment.p_vaddr;
  return {begin / page * page, (begin + segment.p_memsz + page - 1) / page * page};
}

/// Knows the pages of this process that hold something else than the file they are mapped from.
class PageMap {
 public:
  explicit PageMap(Address page)
      : page_(page), fd_(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}

  [[nodiscard]] bool is_as_file(const Range& range) {
    constexpr std::uint64_t kPresent = std::uint64_t{1} << 63U;
    constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62U;
    constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61U;
    entries_.resize((range.end - range.begin) / page_);
    const std::size_t size = entries_.size() * sizeof(entries_[0]);
    const auto place = static_cast<off_t>(range.begin / page_ * sizeof(entries_[0]));
    if (!fd_.valid() || !std::cmp_equal(::pread(fd_.get(), entries_.data(), size, place), size)) {
      return false;
    }
    return std::ranges::none_of(entries_, [](std::uint64_t entry) {
      return (entry & kSwapped) != 0 || ((entry & kPresent) != 0 && (entry & kOfFile) == 0);
    });
  }

 private:
  const Address page_;
  UniqueFd fd_;
  std::vector<std::uint64_t> entries_;
};

struct Release {
  Address page;
  PageMap map;
  std::size_t bytes = 0;  // so far
};

/// For dl_iterate_phdr(3); `data`: the Release.
int release_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& release = *static_cast<Release*>(data);
  const std::span<const Segment> segments(object->dlpi_phdr, object->dlpi_phnum);
  // The program has no name, the kernel's vDSO has one without a directory.
  if (object->dlpi_name[0] != '\0' && object->dlpi_name[0] != '/') {
    return 0;
  }
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const Range range = pages_of(*object, segment, release.page);
    const bool shared = std::ranges::any_of(segments, [&](const Segment& other) {
      const Range writable = pages_of(*object, other, release.page);
      return other.p_type == PT_LOAD && (other.p_flags & PF_W) != 0 && writable.begin < range.end &&
             range.begin < writable.end;
    });
    const std::size_t size = range.end - range.begin;
    if (!shared && release.map.is_as_file(range) &&
        ::madvise(pointer(range.begin), size, MADV_DONTNEED) == 0) {
      release.bytes += size;
    }
  }
  return 0;
}

}  // namespace

std::size_t release_startup_pages() {
  const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
  Release release{.page = page, .map = PageMap(page)};
  ::dl_iterate_phdr(release_object, &release);
  return release.bytes;
}

}  // namespace ceems::os
