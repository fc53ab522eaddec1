#include "exporter/ebpf/file_runs.h"

#include <algorithm>

namespace ceems::exporter::ebpf {

void FileRuns::note(std::uint32_t operation, std::span<const ebpf_file_run> runs) {
  Runs& noted = runs_.at(operation);
  noted = {};
  for (const ebpf_file_run& run : runs) {
    if (run.begins != run.ends) {
      noted.unsure = true;
      continue;
    }
    if (run.begins == 0) {
      continue;  // this CPU has not counted anything yet
    }
    ebpf_file_value& sum = noted.sums[key_of(run.key)];
    (operation == EBPF_READ ? sum.reads : sum.writes) += run.calls;
    (operation == EBPF_READ ? sum.read_bytes : sum.write_bytes) += run.bytes;
  }
}

void FileRuns::add_to(Rows<ebpf_file_key, ebpf_file_value>& files) const {
  for (const Runs& runs : runs_) {
    std::map<Key, ebpf_file_value> left = runs.sums;
    for (auto& [key, value] : files) {
      if (const auto found = left.find(key_of(key)); found != left.end()) {
        value = add(value, found->second);
        left.erase(found);
      }
    }
    // The row was made after the table was read.
    for (const auto& [key, value] : left) {
      files.emplace_back(ebpf_file_key{.cgroup = key[0], .mount = key[1], .root = key[2]}, value);
    }
  }
}

bool FileRuns::has(const ebpf_file_key& key) const {
  return std::ranges::any_of(
      runs_, [&](const Runs& runs) { return runs.unsure || runs.sums.contains(key_of(key)); });
}

}  // namespace ceems::exporter::ebpf
