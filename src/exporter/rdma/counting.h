#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/rdma/reader.h"

namespace ceems::exporter::rdma {

/// Has queue pairs of the given ports counted by process, and puts back at the end what it changed;
/// what was on before stays on. Not thread-safe; reader and clock outlive it.
class Counting {
 public:
  /// Wait before a port that refused is asked again.
  static constexpr auto kRetry = std::chrono::minutes(10);

  Counting(Reader& reader, const Clock& clock) : reader_(reader), clock_(clock) {}
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();

  /// Ports that can count, as Reader::modes() tells.
  void set_modes(const std::vector<LinkMode>& modes);
  /// True when there are ports that can count.
  [[nodiscard]] bool possible() const { return !links_.empty(); }
  /// Switches on what is not on yet.
  void switch_on();

 private:
  struct Link {
    bool on = false;
    bool ours = false;
    bool refused = false;
    Clock::SteadyTime next{};
  };

  Reader& reader_;
  const Clock& clock_;
  std::map<std::string, Link> links_;
};

}  // namespace ceems::exporter::rdma
