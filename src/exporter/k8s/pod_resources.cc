#include "exporter/k8s/pod_resources.h"

#include <cstdint>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/wire_format.h"

namespace ceems::exporter::k8s {
namespace {

constexpr std::size_t kMaxLocalPods = 100'000;
constexpr std::size_t kMaxDevices = 200'000;
constexpr std::size_t kMaxFieldBytes = 1024;

// Field numbers of the messages.
constexpr std::uint32_t kResponsePods = 1;
constexpr std::uint32_t kPodName = 1;
constexpr std::uint32_t kPodNamespace = 2;
constexpr std::uint32_t kPodContainers = 3;
constexpr std::uint32_t kContainerDevices = 2;
constexpr std::uint32_t kDeviceIds = 2;
constexpr std::uint32_t kContainerDynamicResources = 5;
constexpr std::uint32_t kClaimResources = 4;
constexpr std::uint32_t kClaimDriver = 2;
constexpr std::uint32_t kClaimPool = 3;
constexpr std::uint32_t kClaimDevice = 4;

/// The next length-delimited field. Fields of other types are not used.
std::optional<WireField> next_text(WireReader& reader) {
  auto field = reader.next();
  while (field && !field->has_length) {
    field = reader.next();
  }
  return field;
}

class Decoder {
 public:
  Result<std::vector<PodDevices>> decode(std::string_view message) {
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (field->number != kResponsePods) {
        continue;
      }
      if (pods_.size() >= kMaxLocalPods) {
        return fail(ErrorCode::kParse, "more than {} pods", kMaxLocalPods);
      }
      PodDevices pod;
      read_pod(field->bytes, pod);
      if (devices_ > kMaxDevices) {
        return fail(ErrorCode::kParse, "more than {} devices", kMaxDevices);
      }
      if (!pod.device_ids.empty() || !pod.claimed.empty()) {
        pods_.push_back(std::move(pod));
      }
    }
    if (!reader.good() || !good_) {
      return fail(ErrorCode::kParse,
                  "expected a ListPodResourcesResponse, got a malformed message");
    }
    return std::move(pods_);
  }

 private:
  void read_pod(std::string_view message, PodDevices& pod) {
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (field->number == kPodName) {
        pod.name = field->bytes.substr(0, kMaxFieldBytes);
      } else if (field->number == kPodNamespace) {
        pod.name_space = field->bytes.substr(0, kMaxFieldBytes);
      } else if (field->number == kPodContainers) {
        read_container(field->bytes, pod);
      }
    }
    good_ = good_ && reader.good();
  }

  void read_container(std::string_view message, PodDevices& pod) {
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (field->number == kContainerDevices) {
        read_device(field->bytes, pod);
      } else if (field->number == kContainerDynamicResources) {
        read_claim(field->bytes, pod);
      }
    }
    good_ = good_ && reader.good();
  }

  void read_claim(std::string_view message, PodDevices& pod) {
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (field->number == kClaimResources && devices_ <= kMaxDevices) {
        ++devices_;
        read_claimed_device(field->bytes, pod);
      }
    }
    good_ = good_ && reader.good();
  }

  void read_claimed_device(std::string_view message, PodDevices& pod) {
    std::string_view driver;
    std::string_view pool;
    std::string_view device;
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (field->bytes.size() > kMaxFieldBytes) {
        continue;
      }
      if (field->number == kClaimDriver) {
        driver = field->bytes;
      } else if (field->number == kClaimPool) {
        pool = field->bytes;
      } else if (field->number == kClaimDevice) {
        device = field->bytes;
      }
    }
    good_ = good_ && reader.good();
    if (!device.empty()) {
      pod.claimed.push_back(fmt::format("{}/{}/{}", driver, pool, device));
    }
  }

  void read_device(std::string_view message, PodDevices& pod) {
    WireReader reader(message);
    while (const auto field = next_text(reader)) {
      if (devices_ > kMaxDevices) {
        return;
      }
      if (field->number == kDeviceIds && field->bytes.size() <= kMaxFieldBytes) {
        ++devices_;
        pod.device_ids.emplace_back(field->bytes);
      }
    }
    good_ = good_ && reader.good();
  }

  std::vector<PodDevices> pods_;
  std::size_t devices_ = 0;
  bool good_ = true;
};

}  // namespace

Result<std::vector<PodDevices>> parse_pod_resources(std::string_view message) {
  return Decoder().decode(message);
}

}  // namespace ceems::exporter::k8s
