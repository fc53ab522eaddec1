#include "audit/log.h"

#include <array>
#include <chrono>
#include <ctime>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"

namespace ceems::audit {
namespace {

// A line stays short, whatever clients send.
constexpr std::size_t kMaxTextBytes = 500;
constexpr std::size_t kMaxTexts = 50;

std::string_view shortened(std::string_view text) {
  return text.substr(0, kMaxTextBytes);
}

/// RFC 3339 in UTC with milliseconds.
std::string time_text(Clock::SystemTime time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch().count();
  constexpr std::int64_t kSecond = 1000;
  const std::time_t seconds = ms / kSecond;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ms % kSecond);
}

}  // namespace

Result<std::unique_ptr<Log>> Log::open(const Options& options,
                                       std::string program,
                                       const Clock& clock) {
  if (!options.enabled()) {
    return fail(ErrorCode::kInvalidArgument, "no audit is configured");
  }
  CEEMS_TRY(destination, open_destination(options, program));
  return std::unique_ptr<Log>(new Log(options, std::move(program), clock, std::move(destination)));
}

std::string Log::line_of(const Event& event) const {
  std::string line;
  JsonWriter json(line, JsonEscape::kPlain);
  json.begin_object().member("time", time_text(clock_->now())).member("program", program_);
  constexpr std::array<std::string_view, 3> kEvents{"read", "changed", "denied"};
  json.member("event", kEvents.at(static_cast<std::size_t>(event.what)));
  json.member("user", shortened(event.user)).member("role", event.role);
  if (event.request != nullptr) {
    json.member("peer", event.request->remote_address)
        .member("method", shortened(event.request->method));
  }
  const bool routed = !event.route.empty() || event.request == nullptr;
  json.member("path", routed ? event.route : shortened(event.request->path));
  json.member("status", event.status);
  if (!event.reason.empty()) {
    json.member("reason", event.reason);
  }
  for (const auto& [name, values] : event.selected) {
    if (values.empty()) {
      continue;
    }
    json.key(name).begin_array();
    for (std::size_t i = 0; i < values.size() && i < kMaxTexts; ++i) {
      json.value(shortened(values[i]));
    }
    json.end_array();
    if (values.size() > kMaxTexts) {
      json.member(fmt::format("{}_more", name),
                  static_cast<std::int64_t>(values.size() - kMaxTexts));
    }
  }
  json.end_object();
  return line;
}

void Log::write(const Event& event) {
  const std::string line = line_of(event);
  const MutexLock lock(mutex_);
  const auto written = destination_->write(line);
  if (written.has_value() != failing_) {
    lost_ += written ? 0U : 1U;
    return;
  }
  failing_ = !written;
  lost_ += failing_ ? 1U : 0U;
  if (failing_) {
    log::error("cannot write the audit log", {{"err", written.error().message}});
  } else {
    log::info("the audit log is written again", {{"lost_lines", lost_}});
  }
}

void Log::reopen() {
  const MutexLock lock(mutex_);
  if (auto done = destination_->reopen(); !done) {
    log::error("cannot reopen the audit log, keeping the old one", {{"err", done.error().message}});
  }
}

std::uint64_t Log::lost() const {
  const MutexLock lock(mutex_);
  return lost_;
}

}  // namespace ceems::audit
