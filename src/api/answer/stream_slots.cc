#include "api/answer/stream_slots.h"

namespace ceems::api {

std::optional<StreamSlots::Slot> StreamSlots::take(const std::string& user) {
  {
    const MutexLock lock(counts_->mutex);
    std::size_t& own = counts_->of_user[user];
    if (own >= kMaxStreamsOfUser || counts_->all >= kMaxStreams) {
      if (own == 0) {
        counts_->of_user.erase(user);
      }
      return std::nullopt;
    }
    ++own;
    ++counts_->all;
  }
  const auto give_back = [counts = counts_, user](void* /*nothing*/) {
    const MutexLock lock(counts->mutex);
    --counts->all;
    const auto own = counts->of_user.find(user);
    if (--own->second == 0) {
      counts->of_user.erase(own);
    }
  };
  return Slot(std::shared_ptr<void>(nullptr, give_back));
}

}  // namespace ceems::api
