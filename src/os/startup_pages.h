#pragma once

#include <cstddef>

namespace ceems::os {

/// Unmaps the pages of code and constants that the start touched; returns how many bytes of address
/// space that concerns. Most of them (what links and initialises libraries) are never needed again,
/// but count as resident for the life of the program, 10 MB of 19 where libcurl is loaded. Those
/// that are needed come back by themselves, from the page cache as a rule.
///
/// Only what cannot have been written goes (MADV_DONTNEED, madvise(2)): segments that are mapped
/// from a file and not writable (PT_LOAD without PF_W, elf(5)) of objects without relocations in
/// their code; pages that a segment shares with a writable one stay. Break points that a debugger
/// or tracer (uprobes) has set before are lost.
///
/// Call once, after the start. Safe while other threads run, load or unload libraries: the loader's
/// lock is held.
std::size_t release_startup_pages();

}  // namespace ceems::os
