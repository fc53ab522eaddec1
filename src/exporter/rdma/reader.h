#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "exporter/rdma/resources.h"
#include "os/privileges.h"

namespace ceems::exporter::rdma {

/// Reads from the kernel which RDMA objects processes hold. Not thread-safe.
class Reader {
 public:
  virtual ~Reader() = default;
  /// Ports of adapters that can count queue pairs by process, and whether they do. kTimeout: no
  /// answer within the limit.
  virtual Result<std::vector<LinkMode>> modes(std::chrono::milliseconds limit,
                                              std::stop_token stop) = 0;
  /// With `counters` also reads the hardware counters of queue pairs. A part that cannot be read is
  /// absent. It is an error if none can be read.
  virtual Result<Resources> read(bool counters, std::stop_token stop) = 0;
  /// Turns counting by process and type for the queue pairs of a port ("mlx5_0/1") on or off.
  virtual Result<> set_counting(const std::string& link, bool on) = 0;
  /// Capabilities that set_counting() raises.
  [[nodiscard]] virtual std::vector<os::Capability> capabilities() const = 0;
};

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
