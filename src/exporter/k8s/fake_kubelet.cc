#include "exporter/k8s/fake_kubelet.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <utility>

namespace ceems::exporter::k8s {
namespace {

constexpr std::size_t kHeadSize = 9;
constexpr std::size_t kPrefaceSize = 24;
constexpr std::size_t kMaxData = 16384;

enum Frame : std::uint8_t { kData = 0, kHeaders = 1, kSettings = 4, kPing = 6 };
constexpr unsigned kEndStream = 1;
constexpr unsigned kAck = 1;
constexpr unsigned kEndHeaders = 4;

std::string big_endian(std::uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text += static_cast<char>(value >> (8U * static_cast<unsigned>(i)) & 0xFFU);
  }
  return text;
}

std::string frame(Frame kind, unsigned flags, std::uint32_t stream, std::string_view payload) {
  std::string text = big_endian(static_cast<std::uint32_t>(payload.size()), 3);
  text += static_cast<char>(kind);
  text += static_cast<char>(flags);
  text += big_endian(stream, 4);
  text += payload;
  return text;
}

std::string literal(std::string_view name, std::string_view value) {
  std::string text(1, '\0');
  text += static_cast<char>(name.size());
  text += name;
  text += static_cast<char>(value.size());
  text += value;
  return text;
}

/// False if the stop or the end of the connection came first.
bool receive(int fd, std::size_t size, std::string& text, const std::stop_token& stop) {
  constexpr int kLook = 20;
  text.clear();
  while (text.size() < size) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (stop.stop_requested()) {
      return false;
    }
    if (::poll(&wait, 1, kLook) <= 0) {
      continue;
    }
    std::array<char, 4096> part{};
    const ssize_t count = ::recv(fd, part.data(), std::min(part.size(), size - text.size()), 0);
    if (count <= 0) {
      return false;
    }
    text.append(part.data(), static_cast<std::size_t>(count));
  }
  return true;
}

void send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (count <= 0) {
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string proto_field(unsigned number, std::string_view bytes) {
  std::string text(1, static_cast<char>(number << 3U | 2U));
  std::size_t size = bytes.size();
  while (size >= 0x80) {
    text += static_cast<char>((size & 0x7FU) | 0x80U);
    size >>= 7U;
  }
  text += static_cast<char>(size);
  text += bytes;
  return text;
}

std::string proto_pod(std::string_view name,
                      std::string_view name_space,
                      const std::vector<std::string>& device_ids) {
  std::string devices = proto_field(1, "example.com/gpu");
  for (const std::string& id : device_ids) {
    devices += proto_field(2, id);
  }
  const std::string container = proto_field(1, "main") + proto_field(2, devices);
  return proto_field(1,
                     proto_field(1, name) + proto_field(2, name_space) + proto_field(3, container));
}

std::string grpc_frame(std::string_view message) {
  return std::string(1, '\0') + big_endian(static_cast<std::uint32_t>(message.size()), 4) +
         std::string(message);
}

FakeKubelet::FakeKubelet(const std::string& path, Script script)
    : script_(std::move(script)), listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (listener_.get() < 0) {
    throw std::runtime_error("cannot open a socket");
  }
  if (path.size() >= sizeof(address.sun_path)) {
    throw std::runtime_error("path of a socket is too long");
  }
  path.copy(std::data(address.sun_path), path.size());
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): interface of sockets
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener_.get(), 4) != 0) {
    throw std::runtime_error("cannot listen on " + path);
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

FakeKubelet::~FakeKubelet() = default;

void FakeKubelet::run(const std::stop_token& stop) {
  constexpr int kLook = 20;
  while (!stop.stop_requested()) {
    pollfd wait{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kLook) > 0) {
      const UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      serve(fd.get(), stop);
    }
  }
}

void FakeKubelet::serve(int fd, const std::stop_token& stop) {
  std::string text;
  if (script_.manner == Manner::kHangs) {
    receive(fd, SIZE_MAX, text, stop);
    return;
  }
  if (script_.manner == Manner::kBabbles) {
    send_all(fd, script_.body);
    return;
  }
  if (!receive(fd, kPrefaceSize, text, stop)) {
    return;
  }
  send_all(fd, frame(kSettings, 0, 0, ""));
  while (receive(fd, kHeadSize, text, stop)) {
    std::size_t size = 0;
    std::uint32_t stream = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      size = size << 8U | static_cast<unsigned char>(text[i]);
    }
    for (std::size_t i = 5; i < kHeadSize; ++i) {
      stream = stream << 8U | static_cast<unsigned char>(text[i]);
    }
    const auto kind = static_cast<unsigned char>(text[3]);
    const auto flags = static_cast<unsigned char>(text[4]);
    if (size > 0 && !receive(fd, size, text, stop)) {
      return;
    }
    if (kind == kSettings && (flags & kAck) == 0) {
      send_all(fd, frame(kSettings, kAck, 0, ""));
    } else if (kind == kPing && (flags & kAck) == 0) {
      send_all(fd, frame(kPing, kAck, 0, text));
    } else if ((kind == kData || kind == kHeaders) && (flags & kEndStream) != 0) {
      answer(fd, stream);
    }
  }
}

void FakeKubelet::answer(int fd, std::uint32_t stream) {
  ++calls_;
  const std::string ok(1, '\x88');  // :status 200 of the static table
  send_all(fd,
           frame(kHeaders, kEndHeaders, stream, ok + literal("content-type", "application/grpc")));
  for (std::string_view rest = script_.body; !rest.empty();
       rest.remove_prefix(std::min(rest.size(), kMaxData))) {
    send_all(fd, frame(kData, 0, stream, rest.substr(0, kMaxData)));
  }
  send_all(fd, frame(kHeaders, kEndHeaders | kEndStream, stream,
                     literal("grpc-status", script_.status) + literal("grpc-message", "fake")));
}

}  // namespace ceems::exporter::k8s
