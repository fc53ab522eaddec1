#include "os/startup_pages.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace ceems::os {
namespace {

using Address = std::uintptr_t;
using Segment = ElfW(Phdr);

struct Range {
  Address begin = 0;
  Address end = 0;  // not included
};

template <class Thing>
Thing* pointer(Address address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): ELF headers hold addresses as numbers
  return reinterpret_cast<Thing*>(address);
}

/// The whole pages that hold the segment.
Range pages_of(const dl_phdr_info& object, const Segment& segment, Address page) {
  const Address begin = object.dlpi_addr + segment.p_vaddr;
  return {begin / page * page, (begin + segment.p_memsz + page - 1) / page * page};
}

/// True where linking has written into the code.
bool code_is_relocated(const dl_phdr_info& object, std::span<const Segment> segments) {
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_DYNAMIC) {
      continue;
    }
    const auto* entry = pointer<const ElfW(Dyn)>(object.dlpi_addr + segment.p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == DT_TEXTREL ||
          (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0)) {
        return true;
      }
    }
  }
  return false;
}

/// For dl_iterate_phdr(3); `data`: the bytes so far.
int release_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  std::size_t& bytes = *static_cast<std::size_t*>(data);
  const std::span<const Segment> segments(object->dlpi_phdr, object->dlpi_phnum);
  // The program has no name, the kernel's vDSO has one without a directory.
  const bool from_file = object->dlpi_name[0] == '\0' || object->dlpi_name[0] == '/';
  if (!from_file || code_is_relocated(*object, segments)) {
    return 0;
  }
  const auto page = static_cast<Address>(::sysconf(_SC_PAGESIZE));
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) {
      continue;
    }
    const Range range = pages_of(*object, segment, page);
    const bool shared = std::ranges::any_of(segments, [&](const Segment& other) {
      const Range written = pages_of(*object, other, page);
      return other.p_type == PT_LOAD && (other.p_flags & PF_W) != 0 && written.begin < range.end &&
             range.begin < written.end;
    });
    if (!shared &&
        ::madvise(pointer<void>(range.begin), range.end - range.begin, MADV_DONTNEED) == 0) {
      bytes += range.end - range.begin;
    }
  }
  return 0;
}

}  // namespace

std::size_t release_startup_pages() {
  std::size_t bytes = 0;
  ::dl_iterate_phdr(release_object, &bytes);
  return bytes;
}

}  // namespace ceems::os
