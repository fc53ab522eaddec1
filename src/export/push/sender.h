#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "export/push/config.h"
#include "export/unit.h"
#include "metrics/registry.h"
#include "net/client/client.h"
#include "store/database.h"

namespace ceems::exporting {

struct SenderOptions {
  std::chrono::milliseconds poll{10'000};       ///< between looks at a list with nothing new
  std::chrono::milliseconds first_pause{1000};  ///< after a failure; doubled after each further one
  std::chrono::milliseconds max_pause{300'000};
  std::size_t batch = 500;  ///< units in a request
};

/// Sends the units that have ended to one target, in the order in which their ends became known.
/// What the target has is known to the database alone, and moves on when the target has answered
/// with 2xx: a unit may come twice, but none is lost when this program or the target is killed.
///
/// Any other answer means that the same units are sent again later, except 400, 413 and 422, with
/// which receivers refuse what they are sent: then half as many units are sent, and one that is
/// refused alone is left out. As long as the target has taken nothing, this is done only after some
/// time, because wrong URLs are answered in this way, too. Used by one thread.
class Sender {
 public:
  using OpenTargets = std::function<Result<std::unique_ptr<store::ExportTargets>>()>;

  /// All references outlive the object. Passes on errors of net::Client::create().
  static Result<std::unique_ptr<Sender>> create(Target target,
                                                store::Reader& reader,
                                                OpenTargets open,
                                                metrics::Registry& registry,
                                                const Clock& clock,
                                                SenderOptions options = {});

  /// Works until a stop.
  void run(const std::stop_token& stop);
  /// Sends at most one request. Returns how long to wait before the next call.
  std::chrono::milliseconds step(const std::stop_token& stop);

 private:
  Sender(Target target,
         store::Reader& reader,
         OpenTargets open,
         metrics::Registry& registry,
         const Clock& clock,
         SenderOptions options,
         std::unique_ptr<net::Client> client);

  /// Where the target stands, from the database if it is not known.
  Result<std::int64_t> position();
  Result<std::chrono::milliseconds> work(const std::stop_token& stop);
  Result<> move_on(const std::vector<EndedUnit>& units);
  Result<net::ClientResponse> post(const std::vector<EndedUnit>& units,
                                   const std::stop_token& stop);
  void note_partial(const net::ClientResponse& response);
  Result<> leave_out(const EndedUnit& unit, const std::string& why);
  Result<> show_backlog(std::int64_t position);
  std::chrono::milliseconds failed(const std::string& why);

  const Target target_;
  store::Reader& reader_;
  const OpenTargets open_;
  const Clock& clock_;
  const SenderOptions options_;
  const std::unique_ptr<net::Client> client_;

  std::unique_ptr<store::ExportTargets> targets_;
  std::optional<std::int64_t> position_;
  std::size_t limit_;
  std::chrono::milliseconds pause_;
  bool failing_ = false;
  bool taken_ = false;  ///< the target has taken something, so its refusals mean the units
  int refusals_ = 0;    ///< of one unit alone, before that
  std::optional<Clock::SteadyTime> refusal_logged_;

  metrics::Counter& sent_;
  metrics::Counter& rejected_;
  metrics::Counter& failures_;
  metrics::Gauge& waiting_;
  metrics::Gauge& lag_;
};

/// A sender with a thread for each target. Without targets, it only makes the database forget
/// targets of earlier runs.
class Senders {
 public:
  /// All outlive the object.
  static Result<std::unique_ptr<Senders>> create(const std::vector<Target>& targets,
                                                 store::Database& database,
                                                 metrics::Registry& registry,
                                                 const Clock& clock,
                                                 SenderOptions options = {});
  ~Senders() { stop(); }
  Senders(const Senders&) = delete;
  Senders& operator=(const Senders&) = delete;

  /// Call it before units are written: what ends from then on is sent. Begins when the database is
  /// ready, and this program leads.
  void start();
  /// Ends requests that are being sent. Idempotent.
  void stop();

 private:
  Senders(store::Database& database, SenderOptions options)
      : database_(database), options_(options) {}
  Result<> set_targets();
  void run(const std::stop_token& stop);

  store::Database& database_;
  const SenderOptions options_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Sender>> senders_;
  Result<> known_;  ///< whether the database has the targets; the thread's after start()
  std::jthread thread_;
};

}  // namespace ceems::exporting
