#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "exporter/perf/kernel.h"

namespace ceems::exporter::perf {

/// A kernel for tests. Records what was opened, and counters have the values that a test sets.
class FakeKernel final : public Kernel {
 public:
  struct Opened {
    std::uint64_t type;
    std::uint64_t config;
    Target target;
    bool exclude_kernel;
    Reading reading{};
  };

  Result<int> open(const Event& event, const Target& target, bool exclude_kernel) override {
    ++attempts;
    const auto refusal = refusals.find({event.type, event.config});
    if (refusal != refusals.end()) {
      return fail(refusal->second, "refused");
    }
    if (const auto& refused = target.thread < 0 ? refuse_cgroups : refuse_threads) {
      return fail(*refused, "refused");
    }
    const int handle = next_++;
    open_now.insert({handle, {event.type, event.config, target, exclude_kernel}});
    return handle;
  }
  std::optional<Reading> read(int handle) override {
    if (unreadable) {
      return std::nullopt;
    }
    return open_now.at(handle).reading;
  }
  void close(int handle) override { open_now.erase(handle); }

  /// Sets what every open counter of a thread (or of every cgroup, if -1) reads.
  void set(int thread, Reading reading) {
    for (auto& [handle, opened] : open_now) {
      if (opened.target.thread == thread) {
        opened.reading = reading;
      }
    }
  }
  /// Threads that have counters, in the order of opening; -1 for cgroups.
  [[nodiscard]] std::vector<int> threads() const {
    std::vector<int> found;
    for (const auto& [handle, opened] : open_now) {
      found.push_back(opened.target.thread);
    }
    return found;
  }

  std::map<int, Opened> open_now;
  std::map<std::pair<std::uint64_t, std::uint64_t>, ErrorCode> refusals;
  std::optional<ErrorCode> refuse_cgroups;
  std::optional<ErrorCode> refuse_threads;
  bool unreadable = false;
  int attempts = 0;

 private:
  int next_ = 100;
};

}  // namespace ceems::exporter::perf
