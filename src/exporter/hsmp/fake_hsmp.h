#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "exporter/hsmp/hsmp.h"

namespace ceems::exporter::hsmp {

/// Management units for tests, which may change them while they are read.
class FakeHsmp {
 public:
  /// The answer of a socket to a message. Sockets 0 to the highest named one exist.
  void set(std::uint16_t socket, std::uint32_t message, Words words) {
    const MutexLock lock(mutex_);
    answers_[{socket, message}] = words;
    sockets_ = std::max<std::uint16_t>(sockets_, static_cast<std::uint16_t>(socket + 1));
  }
  void set_failing(bool failing) {
    const MutexLock lock(mutex_);
    failing_ = failing;
  }
  /// How often the message was sent.
  [[nodiscard]] int requests(std::uint32_t message) const {
    const MutexLock lock(mutex_);
    return static_cast<int>(std::ranges::count(requests_, message));
  }
  [[nodiscard]] std::unique_ptr<Port> port() { return std::make_unique<FakePort>(*this); }

 private:
  class FakePort final : public Port {
   public:
    explicit FakePort(FakeHsmp& units) : units_(units) {}
    Result<Words> ask(std::uint16_t socket, std::uint32_t message, std::uint16_t words) override {
      return units_.answer(socket, message, words);
    }

   private:
    FakeHsmp& units_;
  };

  Result<Words> answer(std::uint16_t socket, std::uint32_t message, std::uint16_t words) {
    const MutexLock lock(mutex_);
    requests_.push_back(message);
    if (failing_) {
      return fail(ErrorCode::kUnavailable, "message {:#04x} to socket {}: Connection timed out",
                  message, socket);
    }
    if (socket >= sockets_) {
      return fail(ErrorCode::kNotFound, "No such device");
    }
    const auto found = answers_.find({socket, message});
    if (found == answers_.end()) {
      return fail(ErrorCode::kInvalidArgument, "No message of desired type");
    }
    Words answer{};
    std::copy_n(found->second.begin(), std::min<std::size_t>(words, answer.size()), answer.begin());
    return answer;
  }

  mutable Mutex mutex_;
  std::map<std::pair<std::uint16_t, std::uint32_t>, Words> answers_ CEEMS_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> requests_ CEEMS_GUARDED_BY(mutex_);
  std::uint16_t sockets_ CEEMS_GUARDED_BY(mutex_) = 0;
  bool failing_ CEEMS_GUARDED_BY(mutex_) = false;
};

}  // namespace ceems::exporter::hsmp
