#include "kube/pod_watch.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "base/strings.h"
#include "kube/line_splitter.h"

namespace ceems::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kGone = 410;
constexpr const char* kPods = "/api/v1/pods?";

/// Creates an HTTP client for the current connection.
Result<std::unique_ptr<net::Client>> make_client(Connection connection,
                                                 milliseconds timeout,
                                                 std::size_t max_bytes) {
  connection.options.user_agent = "ceems_api_server";
  connection.options.timeout = timeout;
  connection.options.max_response_bytes = max_bytes;
  return net::Client::create(std::move(connection.options));
}

/// Whether a watch can resume at the same place. Otherwise the list must be read again, because the
/// place is too old (410), or watching is forbidden or not supported.
bool may_resume(int status) {
  return status >= 500 || status == 429 || status == 401;
}

}  // namespace

PodWatch::PodWatch(PodWatchOptions options, const Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

PodWatch::~PodWatch() {
  thread_.request_stop();
  if (thread_.joinable()) {
    thread_.join();
  }
}

Result<std::vector<std::shared_ptr<const StoredPod>>> PodWatch::pods(milliseconds wait,
                                                                     const std::stop_token& stop) {
  MutexLock lock(mutex_);
  if (!thread_.joinable()) {
    thread_ = std::jthread([this](const std::stop_token& thread_stop) { run(thread_stop); });
  }
  const auto complete = [this]() CEEMS_REQUIRES(mutex_) {
    return listed_ && (open_ || clock_.steady_now() - complete_at_ < options_.grace);
  };
  if (!changed_.wait_for(lock, stop, wait, complete)) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::kUnavailable, "stopped");
    }
    const std::string why = error_ ? error_->message : "no response yet";
    return fail(ErrorCode::kUnavailable, "{}: {}",
                listed_ ? "the watch of pods is interrupted" : "pods have not been listed yet",
                why);
  }
  return store_.pods();
}

void PodWatch::forget(const std::vector<std::string>& uids) {
  const MutexLock lock(mutex_);
  store_.forget(uids);
}

void PodWatch::run(const std::stop_token& stop) {
  milliseconds pause = options_.first_pause;
  while (!stop.stop_requested()) {
    Result<> done;
    try {
      done = need_list_ ? list(stop) : watch(stop);
    } catch (const std::exception& exception) {
      need_list_ = true;
      done = fail(ErrorCode::kInternal, "unexpected: {}", exception.what());
    }
    if (stop.stop_requested()) {
      return;
    }
    if (done) {
      pause = options_.first_pause;
      continue;
    }
    note_failure(done.error());
    MutexLock lock(mutex_);
    changed_.wait_for(lock, stop, pause, [] { return false; });
    pause = std::min(2 * pause, options_.max_pause);
  }
}

Result<> PodWatch::list(const std::stop_token& stop) {
  CEEMS_TRY(connection, options_.connect(stop));
  const std::string url = connection.server + kPods + fmt::format("limit={}", options_.page_size);
  CEEMS_TRY(client,
            make_client(std::move(connection), options_.list_timeout, options_.max_page_bytes));
  const std::stop_callback on_stop(stop, [&client] { client->cancel(); });
  std::vector<Pod> pods;
  std::size_t malformed = 0;
  std::string next;
  std::string version;
  do {
    CEEMS_TRY(body,
              get_json(*client, next.empty() ? url : url + "&continue=" + percent_encode(next)));
    CEEMS_TRY_IN("list of pods", page, parse_pod_list(body));
    malformed += page.malformed;
    version = std::move(page.resource_version);
    std::ranges::move(page.pods, std::back_inserter(pods));
    if (pods.size() > options_.max_pods) {
      return fail(ErrorCode::kUnavailable, "the cluster has more than {} pods", options_.max_pods);
    }
    next = std::move(page.next);
  } while (!next.empty());
  if (malformed > 0) {
    log::warn("skipped pods without UID or that are not valid JSON",
              {{"cluster_id", options_.cluster_id}, {"pods", malformed}});
  }
  const std::int64_t now = clock_.now_ms();
  {
    const MutexLock lock(mutex_);
    store_.replace(std::move(pods), known_ms_ > 0 ? known_ms_ : now);
    listed_ = true;
    complete_at_ = clock_.steady_now();
  }
  changed_.notify_all();
  known_ms_ = now;
  resource_version_ = std::move(version);
  need_list_ = false;
  return {};
}

void PodWatch::opened() {
  known_ms_ = clock_.now_ms();
  note_success();
  {
    const MutexLock lock(mutex_);
    open_ = true;
    error_.reset();
  }
  changed_.notify_all();
}

void PodWatch::closed() {
  const MutexLock lock(mutex_);
  if (open_) {
    open_ = false;
    complete_at_ = clock_.steady_now();
  }
}

Result<> PodWatch::watch(const std::stop_token& stop) {
  CEEMS_TRY(connection, options_.connect(stop));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.watch_time);
  std::string url = connection.server + kPods +
                    fmt::format("watch=true&allowWatchBookmarks=true&timeoutSeconds={}",
                                std::max<std::int64_t>(seconds.count(), 1));
  if (!resource_version_.empty()) {
    url += "&resourceVersion=" + percent_encode(resource_version_);
  }
  CEEMS_TRY(client,
            make_client(std::move(connection), options_.list_timeout, options_.max_page_bytes));
  LineSplitter lines(options_.max_event_bytes);
  malformed_ = 0;
  const auto begin = steady_clock::now();
  bool was_open = false;
  const net::StreamTaker taker{
      .opened =
          [this, &was_open] {
            was_open = true;
            opened();
          },
      .part = [this, &lines](std::string_view part) -> Result<> {
        known_ms_ = clock_.now_ms();
        return lines.feed(part, [this](std::string_view line) { return take_line(line); });
      }};
  auto answer =
      client->stream(url, {{"Accept", "application/json"}}, options_.idle_timeout, taker, stop);
  closed();
  if (lines.skipped() > 0 || malformed_ > 0) {
    log::warn("skipped events of pods", {{"cluster_id", options_.cluster_id},
                                         {"too_long", lines.skipped()},
                                         {"without_uid", malformed_}});
  }
  if (answer && answer->status / 100 != 2) {
    need_list_ = !may_resume(answer->status);
    return fail(refusal(*answer).with_context("watch of pods"));
  }
  if (resource_version_.empty()) {
    need_list_ = true;  // there is no place to resume from
  }
  if (!answer) {
    // A quiet cluster whose server sends no bookmarks is not a failure.
    if (was_open && answer.error().code == ErrorCode::kTimeout) {
      return {};
    }
    return fail(std::move(answer).error());
  }
  if (steady_clock::now() - begin < options_.first_pause) {
    return fail(ErrorCode::kUnavailable, "watch of pods: the server ended it at once");
  }
  return {};
}

Result<> PodWatch::take_line(std::string_view line) {
  auto event = parse_watch_line(line);
  if (!event) {
    if (event.error().code == ErrorCode::kNoData) {
      ++malformed_;
      return {};
    }
    need_list_ = true;  // the line may have been any event
    return fail(std::move(event).error().with_context("watch of pods"));
  }
  if (event->type == WatchEvent::Type::kError) {
    need_list_ = need_list_ || event->status == kGone || !may_resume(event->status);
    return fail(ErrorCode::kUnavailable, "watch of pods: {} {}", event->status, event->message);
  }
  if (!event->resource_version.empty()) {
    resource_version_ = event->resource_version;
  }
  const std::int64_t now = clock_.now_ms();
  const MutexLock lock(mutex_);
  if (store_.size() < 2 * options_.max_pods || event->type == WatchEvent::Type::kDeleted) {
    store_.apply(*std::move(event), now);
  }
  return {};
}

void PodWatch::note_failure(const Error& error) {
  if (!std::exchange(failing_, true)) {
    log::warn("cannot watch pods, will retry",
              {{"cluster_id", options_.cluster_id}, {"err", error.message}});
  }
  const MutexLock lock(mutex_);
  error_ = error;
}

void PodWatch::note_success() {
  if (std::exchange(failing_, false)) {
    log::info("watching pods again", {{"cluster_id", options_.cluster_id}});
  }
}

}  // namespace ceems::kube
