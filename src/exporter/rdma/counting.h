#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "exporter/rdma/reader.h"

namespace ceems::exporter::rdma {

/// Turns on counting of queue pairs by process on the given ports, and turns it off again at the
/// end on those where it was off. Reader and clock must outlive it. Not thread-safe.
class Counting {
 public:
  /// Pause before a port that refused is tried again.
  static constexpr auto kRetry = std::chrono::minutes(10);

  Counting(Reader& reader, const Clock& clock) : reader_(reader), clock_(clock) {}
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
  ~Counting();

  /// Ports that can count, from Reader::modes().
  void set_modes(const std::vector<LinkMode>& modes);
  /// Whether there are ports that can count.
  [[nodiscard]] bool possible() const { return !links_.empty(); }
  /// Turns counting on where it is off.
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
