#include "exporter/perf/events.h"

#include <linux/perf_event.h>

#include <algorithm>
#include <array>

namespace ceems::exporter::perf {
namespace {

/// The event of a cache as a value for PERF_TYPE_HW_CACHE.
constexpr std::uint64_t cache(std::uint64_t id, std::uint64_t operation, std::uint64_t result) {
  return id | operation << 8U | result << 16U;
}

constexpr std::uint64_t kRead = PERF_COUNT_HW_CACHE_OP_READ;
constexpr std::uint64_t kWrite = PERF_COUNT_HW_CACHE_OP_WRITE;
constexpr std::uint64_t kAccess = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
constexpr std::uint64_t kMiss = PERF_COUNT_HW_CACHE_RESULT_MISS;

constexpr Event hardware(std::string_view profiler,
                         std::uint64_t config,
                         std::string_view series,
                         std::string_view help) {
  return {Group::kHardware, profiler, PERF_TYPE_HARDWARE, config, series, help};
}

constexpr Event software(std::string_view profiler,
                         std::uint64_t config,
                         std::string_view series,
                         std::string_view help) {
  return {Group::kSoftware, profiler, PERF_TYPE_SOFTWARE, config, series, help};
}

constexpr Event cached(std::string_view profiler,
                       std::uint64_t config,
                       std::string_view series,
                       std::string_view help) {
  return {Group::kCache, profiler, PERF_TYPE_HW_CACHE, config, series, help};
}

constexpr std::array kEvents{
    hardware("CpuCycles",
             PERF_COUNT_HW_CPU_CYCLES,
             "cpucycles_total",
             "Number of CPU cycles (frequency scaled)"),
    hardware(
        "CpuInstr", PERF_COUNT_HW_INSTRUCTIONS, "instructions_total", "Number of CPU instructions"),
    hardware("CacheRef",
             PERF_COUNT_HW_CACHE_REFERENCES,
             "cache_refs_total",
             "Number of cache references (non frequency scaled)"),
    hardware(
        "CacheMisses", PERF_COUNT_HW_CACHE_MISSES, "cache_misses_total", "Number of cache misses"),
    hardware("BranchInstr",
             PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
             "branch_instructions_total",
             "Number of CPU branch instructions"),
    hardware("BranchMisses",
             PERF_COUNT_HW_BRANCH_MISSES,
             "branch_misses_total",
             "Number of CPU branch misses"),
    hardware("RefCpuCycles",
             PERF_COUNT_HW_REF_CPU_CYCLES,
             "ref_cpucycles_total",
             "Number of CPU cycles"),
    software("PageFault", PERF_COUNT_SW_PAGE_FAULTS, "page_faults_total", "Number of page faults"),
    software("ContextSwitch",
             PERF_COUNT_SW_CONTEXT_SWITCHES,
             "context_switches_total",
             "Number of context switches"),
    software("CpuMigration",
             PERF_COUNT_SW_CPU_MIGRATIONS,
             "cpu_migrations_total",
             "Number of CPU process migrations"),
    software("MinorFault",
             PERF_COUNT_SW_PAGE_FAULTS_MIN,
             "minor_faults_total",
             "Number of minor page faults"),
    software("MajorFault",
             PERF_COUNT_SW_PAGE_FAULTS_MAJ,
             "major_faults_total",
             "Number of major page faults"),
    cached("L1DataReadHit",
           cache(PERF_COUNT_HW_CACHE_L1D, kRead, kAccess),
           "cache_l1d_read_hits_total",
           "Number L1 data cache read hits"),
    cached("L1DataReadMiss",
           cache(PERF_COUNT_HW_CACHE_L1D, kRead, kMiss),
           "cache_l1d_read_misses_total",
           "Number L1 data cache read misses"),
    cached("L1DataWriteHit",
           cache(PERF_COUNT_HW_CACHE_L1D, kWrite, kAccess),
           "cache_l1d_write_hits_total",
           "Number L1 data cache write hits"),
    cached("L1InstrReadMiss",
           cache(PERF_COUNT_HW_CACHE_L1I, kRead, kMiss),
           "cache_l1_instr_read_misses_total",
           "Number instruction L1 instruction read misses"),
    cached("InstrTLBReadHit",
           cache(PERF_COUNT_HW_CACHE_ITLB, kRead, kAccess),
           "cache_tlb_instr_read_hits_total",
           "Number instruction TLB read hits"),
    cached("InstrTLBReadMiss",
           cache(PERF_COUNT_HW_CACHE_ITLB, kRead, kMiss),
           "cache_tlb_instr_read_misses_total",
           "Number instruction TLB read misses"),
    cached("LLReadHit",
           cache(PERF_COUNT_HW_CACHE_LL, kRead, kAccess),
           "cache_ll_read_hits_total",
           "Number last level read hits"),
    cached("LLReadMiss",
           cache(PERF_COUNT_HW_CACHE_LL, kRead, kMiss),
           "cache_ll_read_misses_total",
           "Number last level read misses"),
    cached("LLWriteHit",
           cache(PERF_COUNT_HW_CACHE_LL, kWrite, kAccess),
           "cache_ll_write_hits_total",
           "Number last level write hits"),
    cached("LLWriteMiss",
           cache(PERF_COUNT_HW_CACHE_LL, kWrite, kMiss),
           "cache_ll_write_misses_total",
           "Number last level write misses"),
    cached("BPUReadHit",
           cache(PERF_COUNT_HW_CACHE_BPU, kRead, kAccess),
           "cache_bpu_read_hits_total",
           "Number BPU read hits"),
    cached("BPUReadMiss",
           cache(PERF_COUNT_HW_CACHE_BPU, kRead, kMiss),
           "cache_bpu_read_misses_total",
           "Number BPU read misses"),
};

void add_group(Group group, const GroupChoice& choice, std::vector<std::size_t>& chosen) {
  if (!choice.on) {
    return;
  }
  const auto named = [&](const Event& event) {
    return event.group == group &&
           std::ranges::find(choice.profilers, event.profiler) != choice.profilers.end();
  };
  const bool all = std::ranges::none_of(kEvents, named);
  for (std::size_t i = 0; i < kEvents.size(); ++i) {
    if (all ? kEvents[i].group == group : named(kEvents[i])) {
      chosen.push_back(i);
    }
  }
}

}  // namespace

std::span<const Event> all_events() {
  return kEvents;
}

std::vector<std::size_t> choose_events(const GroupChoice& hardware_events,
                                       const GroupChoice& software_events,
                                       const GroupChoice& cache_events) {
  std::vector<std::size_t> chosen;
  add_group(Group::kHardware, hardware_events, chosen);
  add_group(Group::kSoftware, software_events, chosen);
  add_group(Group::kCache, cache_events, chosen);
  return chosen;
}

}  // namespace ceems::exporter::perf
