#include "export/push/sender.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/wire_format.h"
#include "export/push/messages.h"

namespace ceems::exporting {
namespace {

using std::chrono::milliseconds;

constexpr int kMaxRefusals = 10;
constexpr milliseconds kAtOnce{0};

net::ClientOptions client_of(net::ClientOptions options) {
  constexpr std::size_t kMaxAnswer = std::size_t{1} << 20U;
  options.user_agent = "ceems_api_server";
  options.max_response_bytes = kMaxAnswer;
  // After most of them, a POST becomes a GET, whose answer says nothing about the units.
  options.follow_redirects = false;
  return options;
}

bool is_refusal(int status) {
  return status == 400 || status == 413 || status == 422;
}

/// The start of what the server says about a failure.
std::string reason(const net::ClientResponse& response) {
  constexpr std::size_t kMaxShown = 300;
  const std::string shown = printable(trim(response.body), kMaxShown);
  return fmt::format("status {}{}{}", response.status, shown.empty() ? "" : ": ", shown);
}

}  // namespace

Result<std::unique_ptr<Sender>> Sender::create(Target target,
                                               store::Reader& reader,
                                               OpenTargets open,
                                               metrics::Registry& registry,
                                               const Clock& clock,
                                               SenderOptions options) {
  CEEMS_TRY_IN("export " + target.name, client, net::Client::create(client_of(target.client)));
  return std::unique_ptr<Sender>(new Sender(std::move(target), reader, std::move(open), registry,
                                            clock, options, std::move(client)));
}

Sender::Sender(Target target,
               store::Reader& reader,
               OpenTargets open,
               metrics::Registry& registry,
               const Clock& clock,
               SenderOptions options,
               std::unique_ptr<net::Client> client)
    : target_(std::move(target)),
      reader_(reader),
      open_(std::move(open)),
      clock_(clock),
      options_(options),
      client_(std::move(client)),
      limit_(options.batch),
      pause_(options.first_pause),
      sent_(registry
                .counters("ceems_api_server_export_sent_units_total",
                          "Units that a target of exports has taken.",
                          {"target"})
                .with({target_.name})),
      rejected_(registry
                    .counters("ceems_api_server_export_rejected_units_total",
                              "Units that a target of exports refused, which are left out.",
                              {"target"})
                    .with({target_.name})),
      failures_(registry
                    .counters("ceems_api_server_export_failures_total",
                              "Requests to a target of exports that failed and are sent again.",
                              {"target"})
                    .with({target_.name})),
      waiting_(registry
                   .gauges("ceems_api_server_export_waiting_units",
                           "Units that have ended and that a target of exports does not have yet.",
                           {"target"})
                   .with({target_.name})),
      lag_(registry
               .gauges("ceems_api_server_export_lag_seconds",
                       "Time since the end of the first unit that a target of exports does not "
                       "have yet.",
                       {"target"})
               .with({target_.name})) {}

void Sender::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (const milliseconds wait = step(stop); wait > kAtOnce) {
      sleep_for(wait, stop);
    }
  }
  targets_.reset();  // before the database closes
}

milliseconds Sender::step(const std::stop_token& stop) {
  try {
    auto wait = work(stop);
    if (wait) {
      return *wait;
    }
    position_.reset();  // another program may lead
    return stop.stop_requested() || wait.error().code == ErrorCode::kUnavailable
               ? options_.poll
               : failed(wait.error().message);
  } catch (const std::exception& exception) {
    return failed(fmt::format("unexpected: {}", exception.what()));
  }
}

Result<std::int64_t> Sender::position() {
  if (!targets_) {
    CEEMS_TRY(opened, open_());
    targets_ = std::move(opened);
  }
  if (!position_) {
    CEEMS_TRY(stored, targets_->position(target_.name));
    position_ = stored;
  }
  return *position_;
}

Result<milliseconds> Sender::work(const std::stop_token& stop) {
  CEEMS_TRY(after, position());
  CEEMS_TRY(show_backlog(after));
  CEEMS_TRY(units, ended_units(reader_, after, limit_));
  if (units.empty()) {
    return options_.poll;
  }
  const auto response = post(units, stop);
  if (stop.stop_requested()) {
    return kAtOnce;
  }
  if (!response) {
    return failed(response.error().message);
  }
  if (response->status >= 200 && response->status < 300) {
    CEEMS_TRY(move_on(units));
    sent_.add(units.size());
    note_partial(*response);
    const bool more = units.size() == limit_;
    limit_ = std::min(2 * limit_, options_.batch);
    return more ? kAtOnce : options_.poll;
  }
  if (!is_refusal(response->status)) {
    return failed(reason(*response));
  }
  if (units.size() > 1) {
    limit_ = units.size() / 2;
    return kAtOnce;
  }
  if (!taken_ && ++refusals_ <= kMaxRefusals) {
    return failed(reason(*response));
  }
  CEEMS_TRY(leave_out(units.front(), reason(*response)));
  return kAtOnce;
}

Result<net::ClientResponse> Sender::post(const std::vector<EndedUnit>& units,
                                         const std::stop_token& stop) {
  if (target_.protocol == Protocol::kOtlp) {
    return client_->post(target_.url, "application/x-protobuf", metrics_request(units, target_), {},
                         stop);
  }
  return client_->post(
      target_.url, "application/x-protobuf", snappy_literals(write_request(units, target_)),
      {{"Content-Encoding", "snappy"}, {"X-Prometheus-Remote-Write-Version", "0.1.0"}}, stop);
}

Result<> Sender::move_on(const std::vector<EndedUnit>& units) {
  CEEMS_TRY(targets_->advance(target_.name, units.back().place));
  position_ = units.back().place;
  taken_ = true;
  pause_ = options_.first_pause;
  if (std::exchange(failing_, false)) {
    log::info("units are sent again", {{"target", target_.name}});
  }
  return {};
}

/// OTLP: the receiver has taken the request, but not all of it. It asks not to send it again.
void Sender::note_partial(const net::ClientResponse& response) {
  if (target_.protocol != Protocol::kOtlp) {
    return;
  }
  WireReader answer(response.body);
  for (auto field = answer.next(); field; field = answer.next()) {
    if (field->number != 1 || !field->has_length) {  // partial_success
      continue;
    }
    WireReader partial(field->bytes);
    for (auto part = partial.next(); part; part = partial.next()) {
      const auto values = part->varint().value_or(0);
      if (part->number == 1 && values > 0) {  // rejected_data_points
        rejected_.add();
        log::warn("a target of exports has left out values",
                  {{"target", target_.name}, {"values", values}});
      }
    }
  }
}

Result<> Sender::leave_out(const EndedUnit& unit, const std::string& why) {
  constexpr std::chrono::hours kQuiet{1};
  CEEMS_TRY(targets_->advance(target_.name, unit.place));
  position_ = unit.place;
  rejected_.add();
  refusals_ = 0;
  const auto now = clock_.steady_now();
  if (!refusal_logged_ || now - *refusal_logged_ >= kQuiet) {
    refusal_logged_ = now;
    log::warn("a target of exports refuses a unit, which is left out; logged once an hour",
              {{"target", target_.name},
               {"cluster_id", printable(unit.unit.cluster)},
               {"uuid", printable(unit.unit.uuid)},
               {"err", why}});
  }
  return {};
}

Result<> Sender::show_backlog(std::int64_t position) {
  constexpr double kMilli = 1e-3;
  CEEMS_TRY(backlog, reader_.ended_backlog(position));
  waiting_.set(static_cast<double>(backlog.units));
  lag_.set(backlog.oldest_ms == 0
               ? 0
               : std::max(static_cast<double>(clock_.now_ms() - backlog.oldest_ms) * kMilli, 0.0));
  return {};
}

milliseconds Sender::failed(const std::string& why) {
  failures_.add();
  if (!std::exchange(failing_, true)) {
    log::warn("units cannot be sent; they are kept", {{"target", target_.name}, {"err", why}});
  }
  return std::exchange(pause_, std::min(2 * pause_, options_.max_pause));
}

Result<std::unique_ptr<Senders>> Senders::create(const std::vector<Target>& targets,
                                                 store::Database& database,
                                                 metrics::Registry& registry,
                                                 const Clock& clock,
                                                 SenderOptions options) {
  std::unique_ptr<Senders> senders(new Senders(database, options));
  for (const Target& target : targets) {
    CEEMS_TRY(sender,
              Sender::create(
                  target, database.reader(), [&database] { return database.open_targets(); },
                  registry, clock, options));
    senders->names_.push_back(target.name);
    senders->senders_.push_back(std::move(sender));
  }
  return senders;
}

void Senders::start() {
  known_ = set_targets();
  thread_ = std::jthread([this](const std::stop_token& stop) {
    if (database_.wait_until_ready(stop)) {
      run(stop);
    }
  });
}

Result<> Senders::set_targets() {
  CEEMS_TRY(targets, database_.open_targets());
  return targets->set(names_);
}

void Senders::run(const std::stop_token& stop) {
  for (; !known_; known_ = set_targets()) {
    log::debug("the targets of exports are not stored yet", {{"err", known_.error().message}});
    sleep_for(options_.poll, stop);
    if (stop.stop_requested()) {
      return;
    }
  }
  std::vector<std::jthread> threads;
  threads.reserve(senders_.size());
  for (const auto& sender : senders_) {
    threads.emplace_back([&sender](const std::stop_token& own) { sender->run(own); });
  }
  const std::stop_callback on_stop(stop, [&threads] {
    for (std::jthread& thread : threads) {
      thread.request_stop();
    }
  });
  for (std::jthread& thread : threads) {
    thread.join();
  }
}

void Senders::stop() {
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
}

}  // namespace ceems::exporting
