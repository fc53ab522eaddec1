#pragma once

#include <cstddef>

namespace ceems::os {

/// Unmaps the pages of code and constants that the start touched; returns how many bytes of address
/// space that concerns. Most of them (what links and initialises libraries) are never needed again,
/// but count as resident for the life of the program, 10 MB of 19 where libcurl is loaded. Those
/// that are needed come back by themselves, from the page cache as a rule.
///
/// Only what is as in the file goes (MADV_DONTNEED, madvise(2)): segments that are mapped from a
/// file and not writable (PT_LOAD without PF_W, elf(5)) and in which no page has been written all
/// the same, by the linker, a debugger or the library itself (/proc/self/pagemap: neither swapped
/// nor present without being of a file; Documentation/admin-guide/mm/pagemap.rst). Nothing goes
/// where that cannot be read, as in a process that has changed its user.
///
/// Call before threads start: what they write meanwhile would be lost.
std::size_t release_startup_pages();

}  // namespace ceems::os
