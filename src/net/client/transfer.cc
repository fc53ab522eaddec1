#include "net/client/transfer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/mutex.h"
#include "base/strings.h"
#include "net/client/curl_library.h"

namespace ceems::net {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::size_t kKept = 16;
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20U;

struct FreeUrl {
  void operator()(CURLU* url) const { curl().url_cleanup(url); }
};
struct FreeText {
  void operator()(char* text) const { curl().free(text); }
};
struct FreeHeaders {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
using UrlHandle = std::unique_ptr<CURLU, FreeUrl>;
using List = std::unique_ptr<curl_slist, FreeHeaders>;

std::string part(CURLU* url, CURLUPart which, unsigned flags) {
  char* text = nullptr;
  if (curl().url_get(url, which, &text, flags) != CURLUE_OK) {
    return {};
  }
  const std::unique_ptr<char, FreeText> owner(text);
  return text;
}

Result<Url> read_url(CURLU* handle) {
  Url url;
  url.scheme = part(handle, CURLUPART_SCHEME, 0);
  url.host = to_lower(part(handle, CURLUPART_HOST, 0));
  url.port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.user = part(handle, CURLUPART_USER, CURLU_URLDECODE);
  url.password = part(handle, CURLUPART_PASSWORD, CURLU_URLDECODE);
  url.path = part(handle, CURLUPART_PATH, 0);
  if ((url.scheme != "http" && url.scheme != "https") || url.host.empty()) {
    return fail(ErrorCode::kInvalidArgument, "bad URL: expected http://… or https://…");
  }
  for (const CURLUPart secret : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_FRAGMENT}) {
    curl().url_set(handle, secret, nullptr, 0);
  }
  url.full = part(handle, CURLUPART_URL, 0);
  return url;
}

void append(List& list, const std::string& line) {
  curl_slist* const longer = curl().slist_append(list.get(), line.c_str());
  if (longer != nullptr) {
    static_cast<void>(list.release());
    list.reset(longer);
  }
}

void append_header(List& list, const std::string& name, const std::string& value) {
  // libcurl expects "name;" for a header without a value.
  append(list, value.empty() ? name + ";" : name + ": " + value);
}

/// The data that libcurl's callbacks fill.
struct Sink {
  ClientResponse response;
  std::size_t limit = 0;
  std::size_t header_bytes = 0;
  bool too_large = false;

  const StreamTaker* stream = nullptr;
  int status = 0;  ///< of the last header received
  bool opened = false;
  steady_clock::time_point last_sign;  ///< when anything last arrived
  std::optional<Error> refused;        ///< the error of the taker
};

/// The status code in "HTTP/1.1 200 OK"; 0 for anything else.
int status_of(std::string_view line) {
  take_until(line, ' ');
  return parse_int<int>(take_word(line)).value_or(0);
}

/// Passes a part of a streamed body to its taker. Returns false if the taker fails.
bool hand_over(Sink& sink, std::string_view part) {
  auto taken = sink.stream->part(part);
  if (!taken) {
    sink.refused = std::move(taken).error();
    return false;
  }
  return true;
}

std::size_t on_body(const char* data, std::size_t size, std::size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  const std::size_t bytes = size * count;
  sink.last_sign = steady_clock::now();
  if (sink.opened) {
    return hand_over(sink, {data, bytes}) ? bytes : 0;
  }
  if (bytes > sink.limit - sink.response.body.size()) {
    sink.too_large = true;
    return 0;
  }
  sink.response.body.append(data, bytes);
  return bytes;
}

std::size_t on_header(const char* data, std::size_t size, std::size_t count, void* user) {
  auto& sink = *static_cast<Sink*>(user);
  const std::size_t bytes = size * count;
  sink.last_sign = steady_clock::now();
  sink.header_bytes += bytes;
  if (sink.header_bytes > kMaxHeaderBytes) {
    sink.too_large = true;
    return 0;
  }
  const std::string_view line = trim(std::string_view(data, bytes));
  if (line.starts_with("HTTP/")) {
    sink.response.headers.clear();  // those were of "100 Continue" or the proxy's response
    sink.status = status_of(line);
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos) {
    sink.response.headers.emplace_back(line.substr(0, colon), trim(line.substr(colon + 1)));
  } else if (line.empty() && sink.stream != nullptr && !sink.opened && sink.status / 100 == 2) {
    sink.opened = true;
    if (sink.stream->opened) {
      sink.stream->opened();
    }
  }
  return bytes;
}

/// A libcurl handle with its connections. curl_easy_setopt() is a C variadic function; set() gives
/// it the right types.
class Session {
 public:
  Session() : multi_(curl().multi_init()), easy_(curl().easy_init()) {}
  ~Session() {
    curl().easy_cleanup(easy_);
    curl().multi_cleanup(multi_);
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Result<ClientResponse> run(const TransferRequest& request, const std::atomic<bool>& cancelled);
  void wake() { curl().multi_wakeup(multi_); }

 private:
  void set(CURLoption option, const std::string& value) {
    curl().easy_setopt(easy_, option, value.c_str());
  }
  void set(CURLoption option, long value) { curl().easy_setopt(easy_, option, value); }
  void set_blob(CURLoption option, const std::string& value) {
    curl_blob blob{};
    blob.data = const_cast<char*>(value.data());  // copied by libcurl
    blob.len = value.size();
    blob.flags = CURL_BLOB_COPY;
    curl().easy_setopt(easy_, option, &blob);
  }
  void set_tls(const TransferRequest& request, List& connect_to, List& headers);
  void set_proxy(const TransferRequest& request, List& proxy_headers);
  CURLcode perform(const std::function<bool()>& ended, milliseconds longest_wait);

  CURLM* multi_;
  CURL* easy_;
};

long version_bits(std::string_view text, bool maximum) {
  constexpr std::array<std::string_view, 4> kNames = {"TLS10", "TLS11", "TLS12", "TLS13"};
  constexpr std::array<long, 4> kMin = {CURL_SSLVERSION_TLSv1_0, CURL_SSLVERSION_TLSv1_1,
                                        CURL_SSLVERSION_TLSv1_2, CURL_SSLVERSION_TLSv1_3};
  constexpr std::array<long, 4> kMax = {CURL_SSLVERSION_MAX_TLSv1_0, CURL_SSLVERSION_MAX_TLSv1_1,
                                        CURL_SSLVERSION_MAX_TLSv1_2, CURL_SSLVERSION_MAX_TLSv1_3};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames.at(i)) {
      return maximum ? kMax.at(i) : kMin.at(i);
    }
  }
  return 0;
}

void Session::set_tls(const TransferRequest& request, List& connect_to, List& headers) {
  const TlsOptions& tls = *request.tls;
  if (!tls.ca.empty()) {
    set_blob(CURLOPT_CAINFO_BLOB, tls.ca);
  }
  set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
  if (!tls.cert.empty()) {
    set_blob(CURLOPT_SSLCERT_BLOB, tls.cert);
  }
  if (!tls.key.empty()) {
    set_blob(CURLOPT_SSLKEY_BLOB, tls.key);
  }
  if (tls.insecure_skip_verify) {
    set(CURLOPT_SSL_VERIFYPEER, 0L);
    set(CURLOPT_SSL_VERIFYHOST, 0L);
  }
  set(CURLOPT_SSLVERSION,
      version_bits(tls.min_version, false) | version_bits(tls.max_version, true));
  if (tls.min_version == "TLS10" || tls.min_version == "TLS11") {
    set(CURLOPT_SSL_CIPHER_LIST, "DEFAULT@SECLEVEL=0");  // otherwise OpenSSL 3 rejects them
  }
  if (!tls.server_name.empty() && request.url.scheme == "https") {
    // libcurl takes the name to send and to verify from the URL. So the URL gets the name of the
    // server, and CURLOPT_CONNECT_TO the real host.
    append(connect_to, tls.server_name + ":" + request.url.port + ":" + request.url.host + ":" +
                           request.url.port);
    std::string url = request.url.full;
    const std::size_t host = std::string_view("https://").size();
    url.replace(host, url.find_first_of("/?", host) - host,
                tls.server_name + ":" + request.url.port);
    set(CURLOPT_URL, url);
    append(headers,
           "Host: " + request.url.host + (request.url.port == "443" ? "" : ":" + request.url.port));
  }
}

void Session::set_proxy(const TransferRequest& request, List& proxy_headers) {
  if (request.proxy_from_environment) {
    return;
  }
  set(CURLOPT_PROXY, request.proxy_url);  // an empty text disables the environment
  set(CURLOPT_NOPROXY, request.no_proxy);
  for (const auto& [name, value] : request.proxy_headers) {
    append_header(proxy_headers, name, value);
  }
  set(CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  curl().easy_setopt(easy_, CURLOPT_PROXYHEADER, proxy_headers.get());
}

CURLcode Session::perform(const std::function<bool()>& ended, milliseconds longest_wait) {
  if (curl().multi_add_handle(multi_, easy_) != CURLM_OK) {
    return CURLE_FAILED_INIT;
  }
  CURLcode code = CURLE_ABORTED_BY_CALLBACK;
  int running = 1;
  while (!ended() && running != 0 && curl().multi_perform(multi_, &running) == CURLM_OK) {
    if (running != 0 &&
        curl().multi_poll(multi_, nullptr, 0, static_cast<int>(longest_wait.count()), nullptr) !=
            CURLM_OK) {
      break;
    }
  }
  int left = 0;
  while (const CURLMsg* message = curl().multi_info_read(multi_, &left)) {
    if (message->msg == CURLMSG_DONE) {
      code = message->data.result;
    }
  }
  curl().multi_remove_handle(multi_, easy_);
  return code;
}

Result<ClientResponse> Session::run(const TransferRequest& request,
                                    const std::atomic<bool>& cancelled) {
  const auto left = std::chrono::ceil<milliseconds>(request.deadline - steady_clock::now());
  if (left <= milliseconds(0) && request.stream == nullptr) {
    return fail(ErrorCode::kTimeout, "no time left");
  }
  List headers;
  List proxy_headers;
  List connect_to;
  List resolved;
  std::array<char, CURL_ERROR_SIZE> detail{};
  Sink sink;
  sink.limit = request.max_response_bytes;
  sink.stream = request.stream;
  sink.last_sign = steady_clock::now();

  curl().easy_reset(easy_);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_QUICK_EXIT, 1L);  // a timeout does not wait for the resolver's thread
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_URL, request.url.full);
  if (request.http2_prior_knowledge) {
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE));
  } else {
    set(CURLOPT_HTTP_VERSION,
        static_cast<long>(request.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
  }
  if (request.stream == nullptr) {
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
  } else {
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set(CURLOPT_TCP_KEEPALIVE, 1L);  // detects a peer that lost power
    set(CURLOPT_TCP_KEEPIDLE, 30L);
    set(CURLOPT_TCP_KEEPINTVL, 5L);
  }
  const auto longest = request.stream == nullptr ? left : request.idle_timeout;
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(std::min(longest, request.connect_timeout).count()));
  curl().easy_setopt(easy_, CURLOPT_ERRORBUFFER, detail.data());
  curl().easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &on_body);
  curl().easy_setopt(easy_, CURLOPT_WRITEDATA, &sink);
  curl().easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &on_header);
  curl().easy_setopt(easy_, CURLOPT_HEADERDATA, &sink);
  if (!request.unix_socket.empty()) {
    set(CURLOPT_UNIX_SOCKET_PATH, request.unix_socket);
  }
  if (!request.addresses.empty()) {
    // The '+' lets the entry expire after a minute, unless it is added again.
    append(resolved, fmt::format("+{}:{}:{}", request.url.host, request.url.port,
                                 fmt::join(request.addresses, ",")));
    curl().easy_setopt(easy_, CURLOPT_RESOLVE, resolved.get());
  }
  for (const auto& [name, value] : request.headers) {
    append_header(headers, name, value);
  }
  append(headers, "Expect:");  // do not wait before sending a large body
  if (request.method == "POST") {
    set(CURLOPT_POST, 1L);
    curl().easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                       static_cast<curl_off_t>(request.body.size()));
    // A null pointer would make libcurl call the read callback.
    curl().easy_setopt(easy_, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    if (find_header(request.headers, "Content-Type") == nullptr) {
      append(headers, "Content-Type:");
    }
  } else if (request.method != "GET") {
    set(CURLOPT_CUSTOMREQUEST, request.method);
  }
  if (request.tls != nullptr) {
    set_tls(request, connect_to, headers);
  }
  set_proxy(request, proxy_headers);
  curl().easy_setopt(easy_, CURLOPT_CONNECT_TO, connect_to.get());
  curl().easy_setopt(easy_, CURLOPT_HTTPHEADER, headers.get());

  bool idle = false;
  const std::stop_callback on_stop(request.stop, [this] { wake(); });
  constexpr milliseconds kMaxWait(1000);
  const CURLcode code = perform(
      [&] {
        idle = request.stream != nullptr &&
               steady_clock::now() - sink.last_sign > request.idle_timeout;
        return idle || cancelled || request.stop.stop_requested();
      },
      request.stream == nullptr ? kMaxWait
                                : std::clamp(request.idle_timeout, milliseconds(1), kMaxWait));
  long status = 0;
  long os_errno = 0;
  curl().easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl().easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_errno);
  curl().easy_reset(easy_);  // drops all references to data of this call
  if (cancelled || request.stop.stop_requested()) {
    return fail(ErrorCode::kUnavailable, "cancelled");
  }
  if (sink.refused) {
    return fail(*std::move(sink.refused));
  }
  if (idle) {
    return fail(ErrorCode::kTimeout, "nothing came for {} ms", request.idle_timeout.count());
  }
  if (sink.too_large) {
    return fail(ErrorCode::kUnavailable, "the answer is larger than {} bytes", sink.limit);
  }
  if (code == CURLE_OPERATION_TIMEDOUT) {
    return fail(ErrorCode::kTimeout, "no answer within the time limit");
  }
  if (code == CURLE_COULDNT_CONNECT && os_errno != 0) {
    Error error = errno_error(static_cast<int>(os_errno), "connect");
    error.code = ErrorCode::kUnavailable;
    return fail(std::move(error));
  }
  if (code == CURLE_URL_MALFORMAT) {
    return fail(ErrorCode::kInvalidArgument, "bad URL");
  }
  if (code != CURLE_OK) {
    const std::string_view text(detail.data());
    return fail(ErrorCode::kUnavailable, "{}",
                printable(text.empty() ? std::string_view(curl().easy_strerror(code)) : text, 300));
  }
  sink.response.status = static_cast<int>(status);
  return std::move(sink.response);
}

}  // namespace

Result<Url> parse_url(const std::string& text) {
  CEEMS_TRY(load_curl());
  const UrlHandle handle(curl().url());
  const CURLUcode code = curl().url_set(handle.get(), CURLUPART_URL, text.c_str(), 0);
  if (code != CURLUE_OK || text.find('\0') != std::string::npos) {
    return fail(ErrorCode::kInvalidArgument, "bad URL: {}",
                code == CURLUE_OK ? "it has a zero byte" : curl().url_strerror(code));
  }
  return read_url(handle.get());
}

Result<Url> resolve_url(const Url& base, const std::string& reference) {
  CEEMS_TRY(load_curl());
  const UrlHandle handle(curl().url());
  curl().url_set(handle.get(), CURLUPART_URL, base.full.c_str(), 0);
  const CURLUcode code = curl().url_set(handle.get(), CURLUPART_URL, reference.c_str(), 0);
  if (code != CURLUE_OK) {
    return fail(ErrorCode::kInvalidArgument, "bad URL: {}", curl().url_strerror(code));
  }
  return read_url(handle.get());
}

struct TransferPool::Impl {
  std::atomic<bool> cancelled = false;
  Mutex mutex;
  std::vector<std::unique_ptr<Session>> kept CEEMS_GUARDED_BY(mutex);
  std::vector<Session*> busy CEEMS_GUARDED_BY(mutex);

  std::unique_ptr<Session> take() {
    const MutexLock lock(mutex);
    std::unique_ptr<Session> session;
    if (kept.empty()) {
      session = std::make_unique<Session>();
    } else {
      session = std::move(kept.back());
      kept.pop_back();
    }
    busy.push_back(session.get());
    return session;
  }
  void give_back(std::unique_ptr<Session> session) {
    const MutexLock lock(mutex);
    std::erase(busy, session.get());
    if (kept.size() < kKept) {
      kept.push_back(std::move(session));
    }
  }
};

TransferPool::TransferPool() : impl_(std::make_unique<Impl>()) {}
TransferPool::~TransferPool() = default;

Result<ClientResponse> TransferPool::run(const TransferRequest& request) {
  CEEMS_TRY(load_curl());
  auto session = impl_->take();
  auto response = session->run(request, impl_->cancelled);
  impl_->give_back(std::move(session));
  return response;
}

void TransferPool::cancel() {
  impl_->cancelled = true;
  const MutexLock lock(impl_->mutex);
  for (Session* session : impl_->busy) {
    session->wake();
  }
}

void TransferPool::drop_kept() {
  std::vector<std::unique_ptr<Session>> dropped;
  const MutexLock lock(impl_->mutex);
  dropped.swap(impl_->kept);
}

bool is_tls_version(std::string_view text) {
  return text.empty() || version_bits(text, false) != 0;
}

}  // namespace ceems::net
