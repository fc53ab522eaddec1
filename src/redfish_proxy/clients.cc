#include "redfish_proxy/clients.h"

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

std::size_t ClientSlots::in_use() const {
  const MutexLock lock(state_->mutex);
  return state_->all;
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
