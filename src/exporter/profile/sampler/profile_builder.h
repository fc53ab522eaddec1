#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "exporter/profile/format/profile.h"
#include "exporter/profile/sampler/python_stack.h"
#include "exporter/profile/sampler/sample.h"
#include "exporter/profile/symbol/kernel_symbols.h"
#include "exporter/profile/symbol/symbolizer.h"

namespace ceems::exporter::profile {

/// Whose profile it is.
struct ProfileOwner {
  std::uint64_t unit = 0;  ///< Sample::unit
  pid_t pid = 0;

  friend auto operator<=>(const ProfileOwner&, const ProfileOwner&) = default;
};

/// Turns samples into profiles. Addresses are named when a sample arrives, because the process may
/// end before the profile is fetched. Not thread-safe.
class ProfileBuilder {
 public:
  /// `kernel` may be null; kernel frames are then "[kernel]". Both must outlive the builder.
  ProfileBuilder(Symbolizer& symbolizer, const KernelSymbols* kernel, unsigned rate);

  /// From now on. The symbols must outlive the builder.
  void name_kernel_by(const KernelSymbols& kernel) { kernel_ = &kernel; }

  void add(const Sample& sample);
  /// The profiles of the samples since the last call. A process that changes to another unit, or
  /// whose number goes to a process of another unit, has several profiles.
  std::map<ProfileOwner, Profile> take();
  /// The same as one profile of all processes.
  Profile take_all();

 private:
  struct LessFrame {
    bool operator()(const Frame& a, const Frame& b) const { return a < b; }
  };
  /// A profile that grows.
  struct Growing {
    stack_image image{};
    Profile profile;
    std::map<Frame, std::uint32_t, LessFrame> frames;
    std::map<std::vector<std::uint32_t>, std::size_t> stacks;
    std::unordered_map<std::uint64_t, std::uint32_t> names;  // frames of user code by address
    std::map<PythonCode, std::uint32_t> functions;
    std::unordered_map<std::uint32_t, NativeRole> roles;  // by frame
  };

  static std::uint32_t frame(Growing& growing, Frame frame);
  std::uint32_t user_frame(Growing& growing, pid_t pid, std::uint64_t address);
  std::uint32_t python_frame(Growing& growing, const Sample& sample, const PythonCode& code);
  void add_python(Growing& growing, const Sample& sample, std::vector<std::uint32_t>& stack);
  [[nodiscard]] Frame kernel_frame(std::uint64_t address) const;

  Symbolizer& symbolizer_;
  const KernelSymbols* kernel_;
  unsigned rate_;
  std::map<ProfileOwner, Growing> processes_;
};

}  // namespace ceems::exporter::profile
