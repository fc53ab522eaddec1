#include "api/login/attempts.h"

#include <algorithm>

namespace ceems::api::login {
namespace {

using std::chrono::seconds;

/// An IPv6 client usually owns a whole /64, so addresses are counted by /64.
std::string_view network_of(std::string_view address) {
  std::size_t groups = 0;
  for (std::size_t i = 0; i < address.size(); ++i) {
    if (address[i] == ':' && ++groups == 4) {
      return address.substr(0, i);
    }
  }
  return address;
}

std::string address_key(std::string_view address) {
  return "address " + std::string(network_of(address));
}

std::string user_key(std::string_view user, std::string_view address) {
  return std::string(network_of(address)) + " " + std::string(user);
}

}  // namespace

seconds Attempts::wait_for(const std::string& key,
                           int limit,
                           std::chrono::steady_clock::time_point now) {
  const auto found = counts_.find(key);
  if (found == counts_.end()) {
    return seconds(0);
  }
  const auto ends = found->second.begun + kWindow;
  if (now >= ends) {
    counts_.erase(found);
    return seconds(0);
  }
  return found->second.failures < limit
             ? seconds(0)
             : std::max(seconds(1), std::chrono::ceil<seconds>(ends - now));
}

seconds Attempts::wait(std::string_view user,
                       std::string_view address,
                       std::chrono::steady_clock::time_point now) {
  const MutexLock lock(mutex_);
  return std::max(wait_for(user_key(user, address), kPerUser, now),
                  wait_for(address_key(address), kPerAddress, now));
}

void Attempts::make_room(std::chrono::steady_clock::time_point now) {
  if (counts_.size() < kMaxCounts) {
    return;
  }
  std::erase_if(counts_, [now](const auto& entry) { return now >= entry.second.begun + kWindow; });
  if (counts_.size() >= kMaxCounts) {
    // There are many addresses at once. The counts of addresses matter more than the counts of
    // users.
    std::erase_if(counts_, [](const auto& entry) { return !entry.first.starts_with("address "); });
  }
  if (counts_.size() >= kMaxCounts) {
    counts_.clear();
  }
}

void Attempts::add(const std::string& key, std::chrono::steady_clock::time_point now) {
  make_room(now);
  Count& count = counts_[key];
  if (count.failures == 0 || now >= count.begun + kWindow) {
    count = {.begun = now, .failures = 0};
  }
  ++count.failures;
}

void Attempts::failed(std::string_view user,
                      std::string_view address,
                      std::chrono::steady_clock::time_point now) {
  const MutexLock lock(mutex_);
  add(user_key(user, address), now);
  add(address_key(address), now);
}

void Attempts::succeeded(std::string_view user, std::string_view address) {
  const MutexLock lock(mutex_);
  counts_.erase(user_key(user, address));
}

}  // namespace ceems::api::login
