#include "exporter/profile/push/pusher.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <protozero/pbf_builder.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"
#include "exporter/profile/format/pprof.h"
#include "exporter/profile/format/profile.h"
#include "net/encoding.h"
#include "net/gunzip.h"

namespace ceems::exporter::profile {
namespace {

// Fields of push.proto and of types/v1/types.proto.
enum class RequestField : protozero::pbf_tag_type { kSeries = 1 };
enum class SeriesField : protozero::pbf_tag_type { kLabels = 1, kSamples = 2 };
enum class LabelField : protozero::pbf_tag_type { kName = 1, kValue = 2 };
enum class SampleField : protozero::pbf_tag_type { kRawProfile = 1 };

using std::chrono::milliseconds;

constexpr const char* kCall = "/push.v1.PusherService/Push";
constexpr std::size_t kMaxAnswer = std::size_t{1} << 20U;

net::ClientOptions client_options(net::ClientOptions options, milliseconds timeout) {
  options.user_agent = "ceems_exporter";
  options.timeout = timeout;
  options.connect_timeout = std::min(options.connect_timeout, timeout);
  options.max_response_bytes = kMaxAnswer;
  return options;
}

/// The URL without user and password.
std::string shown_url(const std::string& url) {
  const std::size_t host = url.find("//") + 2;
  const std::size_t at = url.substr(0, url.find('/', host)).rfind('@');
  return at == std::string::npos ? url : url.substr(0, host) + url.substr(at + 1);
}

/// The start of what the server says about a failure.
std::string reason(const net::ClientResponse& response) {
  const std::string* const encoding = net::find_header(response.headers, "Content-Encoding");
  std::string text = response.body;
  if (encoding != nullptr && same_in_any_case(*encoding, "gzip")) {
    text = net::gunzip(response.body, kMaxAnswer).value_or("");
  }
  constexpr std::size_t kMaxShown = 300;
  const std::string shown = printable(trim(text), kMaxShown);
  return fmt::format("status {}{}{}", response.status, shown.empty() ? "" : ": ", shown);
}

/// The seconds of Retry-After; 0 if there are none. Dates are not read.
std::chrono::seconds retry_after(const net::Headers& headers) {
  const std::string* const value = net::find_header(headers, "Retry-After");
  constexpr std::uint32_t kDay = 86'400;
  return std::chrono::seconds(
      value == nullptr ? 0 : std::min(parse_int<std::uint32_t>(trim(*value)).value_or(0), kDay));
}

}  // namespace

std::string encode_push_request(const PushTarget& target,
                                const std::map<std::string, std::string>& external_labels,
                                std::string_view raw_profile) {
  std::string out;
  constexpr std::size_t kLabelBytes = 512;
  out.reserve(raw_profile.size() + kLabelBytes);
  {
    protozero::pbf_builder<RequestField> request(out);
    protozero::pbf_builder<SeriesField> series(request, RequestField::kSeries);
    const auto add_label = [&](std::string_view name, std::string_view value) {
      protozero::pbf_builder<LabelField> label(series, SeriesField::kLabels);
      label.add_string(LabelField::kName, name.data(), name.size());
      label.add_string(LabelField::kValue, clean_text(value));
    };
    add_label("__name__", "process_cpu");
    add_label("__process_pid__", target.pid);
    add_label("service_name", target.service_name);
    for (const auto& [name, value] : external_labels) {
      add_label(name, value);
    }
    protozero::pbf_builder<SampleField> sample(series, SeriesField::kSamples);
    sample.add_bytes(SampleField::kRawProfile, raw_profile.data(), raw_profile.size());
  }
  return out;
}

Result<std::unique_ptr<Pusher>> Pusher::create(PushConfig config,
                                               const Clock& clock,
                                               PusherOptions options) {
  CEEMS_TRY(client, net::Client::create(client_options(config.client, options.timeout)));
  return std::unique_ptr<Pusher>(new Pusher(std::move(config), clock, options, std::move(client)));
}

Pusher::Pusher(PushConfig config,
               const Clock& clock,
               PusherOptions options,
               std::unique_ptr<net::Client> client)
    : config_(std::move(config)),
      options_(options),
      url_(config_.url + kCall),
      shown_(config_.client.unix_socket.empty() ? shown_url(config_.url)
                                                : "unix://" + config_.client.unix_socket),
      clock_(clock),
      client_(std::move(client)),
      pause_(std::min(options.first_pause, options.max_pause)) {}

Pusher::~Pusher() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<> Pusher::add(const PushTarget& target, const Profile& profile) {
  if (!shows_code(profile)) {
    return {};
  }
  CEEMS_TRY(raw_profile, pprof(profile, PprofUse::kPush));
  std::string body = encode_push_request(target, config_.external_labels, raw_profile);
  if (config_.gzip) {
    constexpr int kLevel = 1;  // the profile in it is compressed already
    std::string packed;
    net::Compressor gzip(net::Encoding::kGzip, kLevel);
    CEEMS_TRY_IN("push", gzip.add(body, true, packed));
    body = std::move(packed);
  }
  bool first_drop = false;
  {
    const MutexLock lock(mutex_);
    ++counters_.queued;
    counters_.queued_bytes += body.size();
    queue_.push_back(std::move(body));
    while (queue_.size() > static_cast<std::size_t>(config_.queue_size) ||
           (counters_.queued_bytes > options_.max_queue_bytes && !queue_.empty())) {
      --counters_.queued;
      counters_.queued_bytes -= queue_.front().size();
      ++counters_.dropped;
      queue_.pop_front();
      first_drop = first_drop || !std::exchange(overflowing_, true);
    }
    if (!thread_.joinable()) {
      thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    }
  }
  changed_.notify_one();
  if (first_drop) {
    log::warn("the queue of profiles is full, dropping the oldest", {{"url", shown_}});
  }
  return {};
}

PushCounters Pusher::counters() const {
  const MutexLock lock(mutex_);
  return counters_;
}

void Pusher::run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { client_->cancel(); });
  while (true) {
    std::string body;
    {
      MutexLock lock(mutex_);
      overflowing_ = overflowing_ && !queue_.empty();
      changed_.wait(lock, stop, [this]() CEEMS_REQUIRES(mutex_) { return !queue_.empty(); });
      if (stop.stop_requested()) {
        return;
      }
      body = std::move(queue_.front());
      queue_.pop_front();
    }
    try {
      deliver(body, stop);
    } catch (const std::exception& exception) {
      note_failure(fmt::format("unexpected: {}", exception.what()));
      const MutexLock lock(mutex_);
      ++counters_.failed;
    }
    const MutexLock lock(mutex_);
    --counters_.queued;
    counters_.queued_bytes -= body.size();
  }
}

void Pusher::deliver(const std::string& body, const std::stop_token& stop) {
  for (std::int64_t retry = 0;; ++retry) {
    const auto response = send(body);
    if (stop.stop_requested()) {
      return;
    }
    const Outcome outcome = judge(response);
    const bool again = outcome == Outcome::kRetry && retry < config_.retries;
    {
      const MutexLock lock(mutex_);
      if (outcome == Outcome::kDone) {
        ++counters_.pushed;
      } else if (!again) {
        ++counters_.failed;
      }
    }
    if (outcome == Outcome::kRetry) {
      pause(stop);  // also before the next profile, so that a broken server has its rest
    }
    if (!again || stop.stop_requested()) {
      return;
    }
    const MutexLock lock(mutex_);
    ++counters_.retried;
  }
}

Result<net::ClientResponse> Pusher::send(const std::string& body) {
  net::Headers headers = {{"Connect-Protocol-Version", "1"}, {"Accept-Encoding", "gzip"}};
  if (config_.gzip) {
    headers.emplace_back("Content-Encoding", "gzip");
  }
  return client_->post(url_, "application/proto", body, headers);
}

Pusher::Outcome Pusher::judge(const Result<net::ClientResponse>& response) {
  constexpr int kOk = 200;
  if (response && response->status == kOk) {
    note_success();
    return Outcome::kDone;
  }
  asked_pause_ = response ? retry_after(response->headers) : std::chrono::seconds(0);
  if (!response) {
    note_failure(response.error().message);
    return response.error().code == ErrorCode::kInvalidArgument ? Outcome::kFailed
                                                                : Outcome::kRetry;
  }
  switch (response->status) {
    case 400:
    case 413:
    case 422:
      note_rejection(reason(*response));
      return Outcome::kRejected;
    case 408:
    case 429:
      note_failure(reason(*response));
      return Outcome::kRetry;
    default:
      break;
  }
  note_failure(reason(*response));
  return response->status >= 500 && response->status != 501 ? Outcome::kRetry : Outcome::kFailed;
}

void Pusher::pause(const std::stop_token& stop) {
  const milliseconds time = std::clamp(asked_pause_, pause_, options_.max_pause);
  pause_ = std::min(2 * pause_, options_.max_pause);
  MutexLock lock(mutex_);
  changed_.wait_for(lock, stop, time, [] { return false; });
}

void Pusher::note_failure(const std::string& why) {
  if (!std::exchange(failing_, true)) {
    log::warn("profiles cannot be pushed", {{"url", shown_}, {"err", why}});
  }
}

void Pusher::note_rejection(const std::string& why) {
  // The server answers, and other profiles may be fine. A job could cause this at will.
  constexpr std::chrono::hours kQuiet{1};
  const auto now = clock_.steady_now();
  if (!rejection_logged_ || now - rejection_logged_at_ >= kQuiet) {
    rejection_logged_ = true;
    rejection_logged_at_ = now;
    log::warn("a profile was rejected; this is logged once an hour",
              {{"url", shown_}, {"err", why}});
  }
}

void Pusher::note_success() {
  pause_ = std::min(options_.first_pause, options_.max_pause);
  if (std::exchange(failing_, false)) {
    log::info("profiles are pushed again", {{"url", shown_}});
  }
}

}  // namespace ceems::exporter::profile
