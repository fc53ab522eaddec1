#include "net/relay/upstream.h"

#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "net/client/tls_files.h"
#include "net/relay/connections.h"
#include "net/relay/tls_client.h"
#include "net/unix_url.h"

namespace ceems::net {

namespace {

std::shared_ptr<ServerAddresses> addresses_of(const UpstreamOptions& options) {
  if (options.addresses) {
    return options.addresses;
  }
  return options.unix_socket.empty()
             ? std::make_shared<ServerAddresses>(options.host, options.port, options.lookup)
             : std::make_shared<ServerAddresses>(options.unix_socket);
}

}  // namespace

bool UpstreamOptions::same_server(const UpstreamOptions& other) const {
  return host == other.host && port == other.port && unix_socket == other.unix_socket &&
         use_tls == other.use_tls && tls == other.tls && connect_timeout == other.connect_timeout &&
         answer_timeout == other.answer_timeout && idle_timeout == other.idle_timeout &&
         max_kept == other.max_kept && keep_for == other.keep_for;
}

Upstream::Upstream(UpstreamOptions options)
    : options_(std::move(options)),
      addresses_(addresses_of(options_)),
      kept_(std::make_unique<Kept>()) {}

Upstream::~Upstream() = default;

Result<std::shared_ptr<Upstream>> Upstream::create(UpstreamOptions options) {
  if (!options.unix_socket.empty()) {
    CEEMS_TRY(check_unix_path(options.unix_socket));
    if (options.use_tls) {
      return fail(ErrorCode::kInvalidArgument, "{}: TLS is not spoken over a unix socket",
                  options.unix_socket);
    }
  }
  std::shared_ptr<Upstream> upstream(new Upstream(std::move(options)));
  CEEMS_TRY_IN(upstream->address(), upstream->tls_context());
  return upstream;
}

std::string Upstream::address() const {
  if (!options_.unix_socket.empty()) {
    return options_.unix_socket;
  }
  const bool is_v6 = options_.host.find(':') != std::string::npos;
  return (is_v6 ? "[" + options_.host + "]" : options_.host) + ":" + options_.port;
}

std::chrono::milliseconds Upstream::silence() const {
  using std::chrono::steady_clock;
  if (in_flight_ == 0) {
    return {};
  }
  const steady_clock::duration since =
      steady_clock::now().time_since_epoch() - steady_clock::duration(heard_);
  return std::chrono::duration_cast<std::chrono::milliseconds>(since);
}

void Upstream::heard() {
  heard_ = std::chrono::steady_clock::now().time_since_epoch().count();
}

void Upstream::drop_kept() {
  kept_->entries.clear();
}

Result<std::shared_ptr<ssl_ctx_st>> Upstream::tls_context() {
  if (!options_.use_tls) {
    return std::shared_ptr<ssl_ctx_st>();
  }
  constexpr std::chrono::seconds kRest{1};
  std::string state = tls_files_state(options_.tls);
  const MutexLock lock(mutex_);
  if (context_ && state == tls_files_) {
    bad_files_.clear();
    return context_;
  }
  const auto now = std::chrono::steady_clock::now();
  if (context_ && state == bad_files_ && now < tried_ + kRest) {
    return context_;
  }
  auto made = make_client_tls_context(options_.tls, options_.host);
  if (made) {
    context_ = std::move(*made);
    tls_files_ = std::move(state);
    bad_files_.clear();
    return context_;
  }
  if (!context_) {
    return made;
  }
  if (bad_files_.empty()) {
    log::error("TLS files of a server cannot be used, the old ones stay in use",
               {{"backend", address()}, {"err", made.error().message}});
  }
  bad_files_ = std::move(state);
  tried_ = now;
  return context_;
}

void Upstream::broke_off(const std::string& user) {
  constexpr std::size_t kSeveral = 3;
  constexpr std::chrono::seconds kTogether{10};
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  broken_[user] = now;
  std::erase_if(broken_, [&](const auto& entry) { return now - entry.second > kTogether; });
  if (broken_.size() >= kSeveral) {
    broken_.clear();
    doubted_ = true;
  }
}

}  // namespace ceems::net
