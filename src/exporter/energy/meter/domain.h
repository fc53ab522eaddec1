#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace ceems::exporter::energy {

/// What energy is accounted for. The first four are disjoint parts; kNode is their sum.
enum class Domain : std::size_t {
  kPackage,  ///< CPU sockets
  kDram,     ///< memory modules
  kGpu,      ///< accelerators, all devices together
  kOther,    ///< node minus the parts that are known: fans, disks, board, losses
  kNode,     ///< the whole node
};

inline constexpr std::size_t kPartCount = 4;    ///< all but kNode
inline constexpr std::size_t kDomainCount = 5;  ///< kNode included

constexpr std::size_t index(Domain domain) {
  return static_cast<std::size_t>(domain);
}

/// Value of the label `domain`.
constexpr std::string_view to_string(Domain domain) {
  constexpr std::array<std::string_view, kDomainCount> kNames{"package", "dram", "gpu", "other",
                                                              "node"};
  return kNames.at(index(domain));
}

inline constexpr std::array<Domain, kDomainCount> kDomains{
    Domain::kPackage, Domain::kDram, Domain::kGpu, Domain::kOther, Domain::kNode};

/// Where a value comes from.
enum class Method {
  kMeasured,  ///< a meter of the hardware
  kDerived,   ///< computed from measured values
  kModelled,  ///< estimated from CPU use
};

/// Value of the label `method`.
constexpr std::string_view to_string(Method method) {
  constexpr std::array<std::string_view, 3> kNames{"measured", "derived", "modelled"};
  return kNames.at(static_cast<std::size_t>(method));
}

}  // namespace ceems::exporter::energy
