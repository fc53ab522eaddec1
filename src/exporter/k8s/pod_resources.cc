#include "exporter/k8s/pod_resources.h"

#include <cstdint>
#include <optional>
#include <utility>

namespace ceems::exporter::k8s {
namespace {

constexpr std::size_t kMostPods = 100'000;
constexpr std::size_t kMostDevices = 200'000;
constexpr std::size_t kLongestText = 1024;

// Field numbers of the messages.
constexpr std::uint64_t kResponsePods = 1;
constexpr std::uint64_t kPodName = 1;
constexpr std::uint64_t kPodNamespace = 2;
constexpr std::uint64_t kPodContainers = 3;
constexpr std::uint64_t kContainerDevices = 2;
constexpr std::uint64_t kDeviceIds = 2;

/// Fields of one message, one after the other (https://protobuf.dev/programming-guides/encoding/).
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// Goes to the next field that has a length; those of other kinds are skipped. False at the end,
  /// or where the message is broken.
  bool next() {
    while (!rest_.empty()) {
      const auto key = varint();
      if (!key || (*key >> kTypeBits) == 0) {
        return broken();
      }
      number_ = *key >> kTypeBits;
      switch (static_cast<unsigned>(*key & kTypeMask)) {
        case kVarint:
          if (!varint()) {
            return broken();
          }
          break;
        case kFixed64:
          if (!skip(8)) {
            return broken();
          }
          break;
        case kFixed32:
          if (!skip(4)) {
            return broken();
          }
          break;
        case kLength: {
          const auto size = varint();
          if (!size || *size > rest_.size()) {
            return broken();
          }
          bytes_ = rest_.substr(0, *size);
          rest_.remove_prefix(*size);
          return true;
        }
        default:  // groups are not used any more
          return broken();
      }
    }
    return false;
  }

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] bool good() const { return good_; }

 private:
  static constexpr unsigned kTypeBits = 3;
  static constexpr std::uint64_t kTypeMask = 7;
  static constexpr unsigned kVarint = 0;
  static constexpr unsigned kFixed64 = 1;
  static constexpr unsigned kLength = 2;
  static constexpr unsigned kFixed32 = 5;

  bool broken() {
    good_ = false;
    return false;
  }

  bool skip(std::size_t size) {
    if (rest_.size() < size) {
      return false;
    }
    rest_.remove_prefix(size);
    return true;
  }

  std::optional<std::uint64_t> varint() {
    constexpr unsigned kBits = 7;
    constexpr unsigned kMostBits = 63;
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift <= kMostBits && !rest_.empty(); shift += kBits) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) {
        return value;
      }
    }
    return std::nullopt;
  }

  std::string_view rest_;
  std::uint64_t number_ = 0;
  std::string_view bytes_;
  bool good_ = true;
};

class Decoder {
 public:
  Result<std::vector<PodDevices>> decode(std::string_view message) {
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() != kResponsePods) {
        continue;
      }
      if (pods_.size() >= kMostPods) {
        return fail(ErrorCode::kParse, "more than {} pods", kMostPods);
      }
      PodDevices pod;
      read_pod(fields.bytes(), pod);
      if (devices_ > kMostDevices) {
        return fail(ErrorCode::kParse, "more than {} devices", kMostDevices);
      }
      if (!pod.device_ids.empty()) {
        pods_.push_back(std::move(pod));
      }
    }
    if (!fields.good() || !good_) {
      return fail(ErrorCode::kParse, "no list of pod resources: broken message");
    }
    return std::move(pods_);
  }

 private:
  void read_pod(std::string_view message, PodDevices& pod) {
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kPodName) {
        pod.name = fields.bytes().substr(0, kLongestText);
      } else if (fields.number() == kPodNamespace) {
        pod.name_space = fields.bytes().substr(0, kLongestText);
      } else if (fields.number() == kPodContainers) {
        read_container(fields.bytes(), pod);
      }
    }
    good_ = good_ && fields.good();
  }

  void read_container(std::string_view message, PodDevices& pod) {
    Fields fields(message);
    while (fields.next()) {
      if (fields.number() == kContainerDevices) {
        read_device(fields.bytes(), pod);
      }
    }
    good_ = good_ && fields.good();
  }

  void read_device(std::string_view message, PodDevices& pod) {
    Fields fields(message);
    while (fields.next() && devices_ <= kMostDevices) {
      if (fields.number() == kDeviceIds && fields.bytes().size() <= kLongestText) {
        ++devices_;
        pod.device_ids.emplace_back(fields.bytes());
      }
    }
    good_ = good_ && fields.good();
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
