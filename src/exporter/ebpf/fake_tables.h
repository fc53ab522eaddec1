#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exporter/ebpf/tables.h"

namespace ceems::exporter::ebpf {

/// Tables with the rows that a test sets.
class FakeTables final : public Tables {
 public:
  /// Outlives the tables.
  struct State {
    Readings readings = {};
    std::map<std::uint64_t, ebpf_cgroup> cgroups = {};
    std::map<std::uint64_t, std::string> mounts = {};  ///< last name of the mount point by address
    std::optional<Error> failure = {};
    int reads = 0;
    std::vector<std::string> forgotten = {};
    bool files_in_use = false;  ///< forget_file() refuses
  };

  explicit FakeTables(State& state) : state_(state) {}

  Result<Readings> read() override {
    ++state_.reads;
    if (state_.failure) {
      return fail(*state_.failure);
    }
    return state_.readings;
  }
  std::optional<ebpf_cgroup> cgroup(std::uint64_t id) override {
    const auto found = state_.cgroups.find(id);
    return found == state_.cgroups.end() ? std::nullopt : std::optional(found->second);
  }
  Rows<std::uint64_t, ebpf_cgroup> cgroups() override {
    return {state_.cgroups.begin(), state_.cgroups.end()};
  }
  std::optional<ebpf_place> place(const ebpf_file_key& key) override {
    const auto found = state_.mounts.find(key.mount);
    if (found == state_.mounts.end()) {
      return std::nullopt;
    }
    ebpf_place place{};
    place.text[0] = 1;
    std::memcpy(&place.text[1], found->second.c_str(), found->second.size() + 1);
    place.length = static_cast<ebpf_u32>(found->second.size() + 2);
    std::memcpy(place.type, "tmpfs", 6);
    return place;
  }
  bool forget_file(const ebpf_file_key& key) override {
    if (state_.files_in_use) {
      return false;
    }
    state_.forgotten.push_back("file " + std::to_string(key.cgroup));
    return true;
  }
  void forget_names(std::uint64_t cgroup) override {
    state_.forgotten.push_back("names " + std::to_string(cgroup));
  }
  void forget_latency(const ebpf_latency_key&) override {
    state_.forgotten.emplace_back("latency");
  }
  void forget_traffic(const ebpf_traffic_key& key) override {
    state_.forgotten.push_back("traffic " + std::to_string(key.cgroup));
  }
  void forget_cgroup(std::uint64_t id) override {
    state_.cgroups.erase(id);
    state_.forgotten.push_back("cgroup " + std::to_string(id));
  }

 private:
  State& state_;
};

}  // namespace ceems::exporter::ebpf
