#include "redfish_proxy/clients.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace ceems::redfish_proxy {
namespace {

bool is_loopback(std::string_view peer) {
  static const net::TrustedPeers kLoopback{
      .ranges = {*net::Cidr::parse("127.0.0.0/8"), *net::Cidr::parse("::1")}};
  return kLoopback.contains(peer);
}

}  // namespace

Client client_of(const net::Request& request, const net::TrustedPeers& proxies) {
  Client client{.address = request.remote_address, .loopback = is_loopback(request.remote_address)};
  if (!proxies.contains(request.remote_address)) {
    return client;
  }
  // Fields before the last one may come from the client itself.
  for (const auto& [name, value] : request.headers) {
    if (same_in_any_case(name, "X-Real-IP")) {
      client.address = net::canonical_address(trim(value)).value_or("");
      client.loopback = is_loopback(client.address);
    }
  }
  return client;
}

class ClientSlots::Slot {
 public:
  Slot(std::shared_ptr<State> state, std::string client)
      : state_(std::move(state)), client_(std::move(client)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    const MutexLock lock(state_->mutex);
    const auto found = state_->counts.find(client_);
    if (--found->second == 0) {
      state_->counts.erase(found);
    }
    --state_->all;
  }

 private:
  std::shared_ptr<State> state_;
  std::string client_;
};

std::shared_ptr<void> ClientSlots::take(const std::string& client, std::size_t limit) {
  {
    const MutexLock lock(state_->mutex);
    std::size_t& count = state_->counts[client];
    if (count >= limit) {
      return nullptr;
    }
    ++count;
    ++state_->all;
  }
  return std::make_shared<Slot>(state_, client);
}

std::size_t ClientSlots::count(const std::string& client) const {
  const MutexLock lock(state_->mutex);
  const auto found = state_->counts.find(client);
  return found == state_->counts.end() ? 0 : found->second;
}

std::size_t ClientSlots::in_use() const {
  const MutexLock lock(state_->mutex);
  return state_->all;
}

ClientRates::Verdict ClientRates::count(const std::string& client,
                                        std::int64_t per_second,
                                        Clock::time_point now) {
  constexpr double kFull = std::chrono::duration<double>(kWindow).count();
  const MutexLock lock(mutex_);
  forget_quiet(now);
  const auto [found, is_new] = accounts_.try_emplace(client);
  Account& account = found->second;
  const double passed = std::chrono::duration<double>(now - account.seen).count();
  account.seconds = is_new ? kFull : std::min(kFull, account.seconds + std::max(passed, 0.0));
  account.seen = now;
  const double cost = 1.0 / static_cast<double>(per_second);
  account.beyond = account.beyond && account.seconds < kFull;
  if (account.seconds >= cost) {
    account.seconds -= cost;
    return Verdict::kWithin;
  }
  return std::exchange(account.beyond, true) ? Verdict::kBeyond : Verdict::kFirstBeyond;
}

void ClientRates::forget_quiet(Clock::time_point now) {
  if (accounts_.size() < kMaxClients) {
    return;
  }
  std::erase_if(accounts_, [now](const auto& entry) { return now - entry.second.seen > kWindow; });
  if (accounts_.size() > kMaxClients / 2) {
    accounts_.clear();  // no site has this many nodes, and this must not take long often
  }
}

void NamedByClients::remember(const std::string& client, const BmcUrl& bmc, Clock::time_point now) {
  entries_.store(client, {.bmc = bmc, .named = now});
}

std::optional<BmcUrl> NamedByClients::find(const std::string& client,
                                           std::chrono::milliseconds max_age,
                                           Clock::time_point now) {
  auto entry = entries_.find(client);
  if (!entry || now - entry->named > max_age) {
    return std::nullopt;
  }
  return std::move(entry->bmc);
}

}  // namespace ceems::redfish_proxy
