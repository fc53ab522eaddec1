#include "net/client/smtp.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "base/strings.h"
#include "net/client/curl_library.h"

namespace ceems::net {
namespace {

constexpr long kFirstPermanent = 500;
constexpr long kFirstTemporary = 400;

/// The upload of one message.
struct Upload {
  std::string_view rest;
  const std::function<bool()>* handing_over = nullptr;
  bool handed = false;
  bool withdrawn = false;
  const std::stop_token* stop = nullptr;
};

std::size_t read_part(char* to, std::size_t size, std::size_t count, void* context) {
  auto& upload = *static_cast<Upload*>(context);
  if (upload.rest.empty()) {
    if (!upload.handed && !(*upload.handing_over)()) {
      upload.withdrawn = true;
      return CURL_READFUNC_ABORT;
    }
    upload.handed = true;
    return 0;
  }
  const std::size_t length = std::min(size * count, upload.rest.size());
  std::memcpy(to, upload.rest.data(), length);
  upload.rest.remove_prefix(length);
  return length;
}

int on_progress(void* context,
                curl_off_t /*down_total*/,
                curl_off_t /*down*/,
                curl_off_t /*up_total*/,
                curl_off_t /*up*/) {
  const auto& upload = *static_cast<const Upload*>(context);
  return !upload.handed && upload.stop->stop_requested() ? 1 : 0;
}

struct FreeList {
  void operator()(curl_slist* list) const { curl().slist_free_all(list); }
};
struct FreeHandle {
  void operator()(CURL* handle) const { curl().easy_cleanup(handle); }
};

std::string bracketed(const std::string& address) {
  return "<" + address + ">";
}

/// The code of the server's answer decides; without one, whether it had the whole message.
MailAnswer answer_of(CURLcode code, long status, const Upload& upload, std::string_view text) {
  if (code == CURLE_OK) {
    return {.outcome = MailOutcome::kSent};
  }
  MailAnswer answer{.outcome = MailOutcome::kTemporary, .problem = printable(text, 200)};
  if (upload.withdrawn) {
    return answer;
  }
  if (status >= kFirstTemporary) {
    answer.problem += " (SMTP status " + std::to_string(status) + ")";
    answer.outcome = status >= kFirstPermanent ? MailOutcome::kRefused : MailOutcome::kTemporary;
    return answer;
  }
  if (upload.handed) {
    answer.outcome = MailOutcome::kUnknown;
  }
  return answer;
}

}  // namespace

Result<> check_smtp(const SmtpOptions& options) {
  const std::string_view url = options.url;
  const std::size_t scheme = url.starts_with("smtp://") ? 7 : url.starts_with("smtps://") ? 8 : 0;
  const std::string_view host = url.substr(std::min(scheme, url.size()));
  if (scheme == 0 || host.empty() ||
      host.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]") !=
          std::string_view::npos) {
    return fail(ErrorCode::kInvalidArgument,
                "expected smtp://HOST, smtp://HOST:PORT or smtps://HOST:PORT");
  }
  return {};
}

MailAnswer send_smtp(const SmtpOptions& options,
                     const std::string& from,
                     const std::vector<std::string>& to,
                     const std::string& message,
                     const std::function<bool()>& handing_over,
                     const std::stop_token& stop) {
  if (auto loaded = load_curl(); !loaded) {
    return {.outcome = MailOutcome::kTemporary, .problem = loaded.error().message};
  }
  const CurlLibrary& library = curl();
  const std::unique_ptr<CURL, FreeHandle> handle(library.easy_init());
  if (!handle) {
    return {.outcome = MailOutcome::kTemporary, .problem = "libcurl cannot start"};
  }
  curl_slist* raw = nullptr;
  for (const std::string& address : to) {
    raw = library.slist_append(raw, bracketed(address).c_str());
  }
  const std::unique_ptr<curl_slist, FreeList> recipients(raw);
  Upload upload{.rest = message, .handing_over = &handing_over, .stop = &stop};
  std::array<char, CURL_ERROR_SIZE> text{};
  // The name after the slash is that of this host in EHLO.
  const std::string url = options.url + (options.hello.empty() ? "" : "/" + options.hello);
  const auto set = [&](auto option, auto value) {
    return library.easy_setopt(handle.get(), option, value) == CURLE_OK;
  };
  bool good =
      set(CURLOPT_URL, url.c_str()) && set(CURLOPT_NOSIGNAL, 1L) &&
      set(CURLOPT_ERRORBUFFER, text.data()) && set(CURLOPT_MAIL_FROM, bracketed(from).c_str()) &&
      set(CURLOPT_MAIL_RCPT, recipients.get()) && set(CURLOPT_UPLOAD, 1L) &&
      set(CURLOPT_READFUNCTION, &read_part) && set(CURLOPT_READDATA, &upload) &&
      set(CURLOPT_NOPROGRESS, 0L) && set(CURLOPT_XFERINFOFUNCTION, &on_progress) &&
      set(CURLOPT_XFERINFODATA, &upload) &&
      set(CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count())) && set(CURLOPT_PROXY, "");
  if (good && options.starttls) {
    good = set(CURLOPT_USE_SSL, static_cast<long>(CURLUSESSL_ALL));
  }
  if (good && !options.ca_file.empty()) {
    good = set(CURLOPT_CAINFO, options.ca_file.c_str());
  }
  if (good && !options.username.empty()) {
    good = set(CURLOPT_USERNAME, options.username.c_str()) &&
           set(CURLOPT_PASSWORD, options.password.c_str());
  }
  if (!good || stop.stop_requested()) {
    return {.outcome = MailOutcome::kTemporary,
            .problem = good ? "stopped" : "libcurl refuses the settings; has it SMTP?"};
  }
  const CURLcode code = library.easy_perform(handle.get());
  long status = 0;
  library.easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status);
  return answer_of(code, status, upload,
                   text.front() == '\0' ? library.easy_strerror(code) : text.data());
}

}  // namespace ceems::net
