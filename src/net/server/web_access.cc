#include "net/server/web_access.h"

#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include <openssl/ssl.h>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "crypto/base64.h"
#include "crypto/password.h"
#include "net/server/tls.h"
#include "net/server/web_config.h"

namespace ceems::net {

namespace {

constexpr std::size_t kCachedPasswords = 50;  // this many good ones and as many bad ones

/// The attributes from stat(2) that change with the content of a file.
struct Stamp {
  ino_t inode = 0;
  off_t size = -1;
  timespec modified{};
  timespec changed{};

  bool operator==(const Stamp& other) const {
    const auto same = [](const timespec& a, const timespec& b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return inode == other.inode && size == other.size && same(modified, other.modified) &&
           same(changed, other.changed);
  }
};

using AroundFiles = std::function<void(const std::function<void()>&)>;

void look_at(const AroundFiles& around, const std::function<void()>& look) {
  if (around) {
    around(look);
  } else {
    look();
  }
}

Stamp stamp_of(const std::string& file, const AroundFiles& around) {
  Stamp stamp;
  struct stat info{};
  if (file.empty()) {
    return stamp;
  }
  int status = ::stat(file.c_str(), &info);
  if (status != 0 && errno == EACCES) {  // in a directory that only root may search
    look_at(around, [&] { status = ::stat(file.c_str(), &info); });
  }
  if (status == 0) {
    stamp = {info.st_ino, info.st_size, info.st_mtim, info.st_ctim};
  }
  return stamp;
}

/// True if the file was written so recently that another write could leave the same stamp: the
/// kernel's clock for files ticks only every few milliseconds.
bool is_fresh(const Stamp& stamp) {
  constexpr std::int64_t kNanoseconds = 50'000'000;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t age = (now.tv_sec - stamp.changed.tv_sec) * std::int64_t{1'000'000'000} +
                           (now.tv_nsec - stamp.changed.tv_nsec);
  return age >= 0 && age < kNanoseconds;
}

using Stamps = std::array<Stamp, 3>;

Stamps stamps_of(const WebConfig::Tls& tls, const AroundFiles& around) {
  return {stamp_of(tls.cert_file, around), stamp_of(tls.key_file, around),
          stamp_of(tls.client_ca_file, around)};
}

Result<WebConfig> load(const std::string& file) {
  CEEMS_TRY(node, config::load_yaml(file));
  return parse_web_config(node, std::filesystem::path(file).parent_path());
}

struct Credentials {
  std::string user;
  std::string password;
};

/// The credentials of basic authentication (RFC 7617 §2).
std::optional<Credentials> credentials_of(const Request& request) {
  const std::string* field = find_header(request.headers, "Authorization");
  if (field == nullptr) {
    return std::nullopt;
  }
  std::string_view rest = *field;
  if (to_lower(take_word(rest)) != "basic") {
    return std::nullopt;
  }
  const auto pair = crypto::base64_decode(trim(rest));
  if (!pair) {
    return std::nullopt;
  }
  const std::size_t colon = pair->find(':');
  if (colon == std::string::npos) {
    return std::nullopt;
  }
  return Credentials{pair->substr(0, colon), pair->substr(colon + 1)};
}

struct Subject {
  Credentials given;
  std::string hash;
  bool known = false;
  std::string digest;
};

/// The password to check, and the hash to check it against. Unknown users get a dummy hash, so that
/// their check takes as long.
std::optional<Subject> subject_of(const WebRules& rules, const Request& request) {
  auto given = credentials_of(request);
  if (!given) {
    return std::nullopt;
  }
  Subject subject{*std::move(given), crypto::dummy_hash(rules.users.front().second), false, {}};
  for (const auto& [name, hash] : rules.users) {
    if (name == subject.given.user) {
      subject.hash = hash;
      subject.known = true;
    }
  }
  subject.digest =
      crypto::PasswordCache::digest(subject.given.user, subject.hash, subject.given.password);
  return subject;
}

}  // namespace

struct WebAccess::Impl {
  std::string file;
  AroundFiles around;
  std::function<void(std::int64_t)> on_certificate;
  bool tls_at_start = false;
  crypto::PasswordCache passwords{kCachedPasswords};

  Mutex mutex;
  WebConfig config CEEMS_GUARDED_BY(mutex);
  std::shared_ptr<const WebRules> rules CEEMS_GUARDED_BY(mutex);
  std::shared_ptr<SSL_CTX> context CEEMS_GUARDED_BY(mutex);
  std::optional<Stamp> config_stamp CEEMS_GUARDED_BY(mutex);
  std::optional<Stamps> tls_stamps CEEMS_GUARDED_BY(mutex);
  bool tls_refused CEEMS_GUARDED_BY(mutex) = false;  ///< configuration rejected for a TLS file
  std::string reported CEEMS_GUARDED_BY(mutex);      ///< the problem that was logged last

  /// Reads the configuration and the files that it names again.
  Result<> read_all() CEEMS_REQUIRES(mutex) {
    const Stamp stamp = stamp_of(file, around);
    config_stamp = is_fresh(stamp) ? std::nullopt : std::optional(stamp);
    rules.reset();
    tls_refused = false;
    Result<WebConfig> loaded = fail(ErrorCode::kInternal, "not read");
    look_at(around, [&] { loaded = load(file); });
    if (!loaded) {
      return fail(std::move(loaded).error());
    }
    config = *std::move(loaded);
    if (config.tls.enabled) {
      if (auto done = read_tls(); !done) {
        tls_refused = true;
        return done;
      }
    }
    rules = std::make_shared<const WebRules>(WebRules{config.headers, config.basic_auth_users});
    return {};
  }

  /// Reads only the certificates and the key again. On failure, the last good ones stay in use.
  Result<> read_tls() CEEMS_REQUIRES(mutex) {
    const Stamps stamps = stamps_of(config.tls, around);
    bool fresh = false;
    for (const Stamp& stamp : stamps) {
      fresh = fresh || is_fresh(stamp);
    }
    tls_stamps = fresh ? std::nullopt : std::optional(stamps);
    Result<std::shared_ptr<SSL_CTX>> made = fail(ErrorCode::kInternal, "not read");
    const WebConfig::Tls& tls = config.tls;
    look_at(around, [&] { made = make_tls_context(tls); });
    if (!made) {
      return fail(std::move(made).error().with_context(file));
    }
    context = *std::move(made);
    const auto end = certificate_end(*context);
    if (end && on_certificate) {
      on_certificate(*end);
    }
    return {};
  }

  void report(const Result<>& result, std::string_view consequence) CEEMS_REQUIRES(mutex) {
    const std::string trouble = result ? std::string() : result.error().message;
    if (trouble == reported) {
      return;
    }
    if (trouble.empty()) {
      log::info("Web configuration is in order again", {{"file", file}});
    } else {
      log::error(consequence, {{"err", trouble}});
    }
    reported = trouble;
  }

  void refresh() CEEMS_REQUIRES(mutex) {
    const bool is_good = rules && tls_at_start && config.tls.enabled;
    const bool tls_changed =
        (is_good || tls_refused) && tls_stamps != stamps_of(config.tls, around);
    if (config_stamp != stamp_of(file, around) || (tls_changed && !is_good)) {
      report(read_all(), "Web configuration became invalid, all requests are answered with 500");
    } else if (tls_changed) {
      report(read_tls(), "TLS files cannot be used, the last good ones stay in use");
    }
  }
};

Result<std::unique_ptr<WebAccess>> WebAccess::open(
    const std::string& file,
    AroundFiles around_files,
    std::function<void(std::int64_t)> on_certificate) {
  auto impl = std::make_unique<Impl>();
  impl->around = std::move(around_files);
  impl->on_certificate = std::move(on_certificate);
  impl->file = file;
  {
    const MutexLock lock(impl->mutex);
    CEEMS_TRY(impl->read_all());
    impl->tls_at_start = impl->config.tls.enabled;
  }
  return std::unique_ptr<WebAccess>(new WebAccess(std::move(impl)));
}

WebAccess::WebAccess(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WebAccess::~WebAccess() = default;

bool WebAccess::tls() const {
  return impl_->tls_at_start;
}

std::shared_ptr<ssl_ctx_st> WebAccess::tls_context() {
  const MutexLock lock(impl_->mutex);
  impl_->refresh();
  return impl_->context;
}

std::shared_ptr<const WebRules> WebAccess::rules() {
  const MutexLock lock(impl_->mutex);
  impl_->refresh();
  return impl_->rules;
}

WebAccess::Verdict WebAccess::authorize(const WebRules& rules, Request& request) {
  if (rules.users.empty()) {
    return Verdict::kAllowed;
  }
  const auto subject = subject_of(rules, request);
  if (!subject) {
    return Verdict::kDenied;
  }
  const auto known = impl_->passwords.find(subject->digest);
  if (!known) {
    return Verdict::kUnknown;
  }
  if (!*known) {
    return Verdict::kDenied;
  }
  request.authenticated_user = subject->given.user;
  return Verdict::kAllowed;
}

WebAccess::Verdict WebAccess::check_password(const WebRules& rules, Request& request) {
  const auto subject = subject_of(rules, request);
  if (!subject) {
    return Verdict::kDenied;
  }
  // Another request with the same password may have been checked while this one waited.
  auto good = impl_->passwords.find(subject->digest);
  if (!good) {
    const bool matches = crypto::bcrypt_matches(subject->given.password, subject->hash);
    good = matches && subject->known;
    impl_->passwords.add(subject->digest, *good);
  }
  if (!*good) {
    return Verdict::kDenied;
  }
  request.authenticated_user = subject->given.user;
  return Verdict::kAllowed;
}

}  // namespace ceems::net
