#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/result.h"
#include "ingest/update_source.h"
#include "ingest/update_window.h"
#include "store/store.h"

namespace ceems::ingest {

/// One window of one cluster.
struct FetchedWindow {
  store::ClusterUpdate update;  ///< includes the gaps with which it may be written
  /// Why metrics are missing; nothing if none are.
  std::optional<Error> cause;
  bool lasting = false;                    ///< Missing::lasting of all updaters
  std::optional<Error> people_cause = {};  ///< why users, projects or leads are missing
};

/// Releases complete windows and fetches the next one.
struct WindowRequest {
  std::int64_t start_ms = 0;     ///< of the next window
  std::int64_t complete_ms = 0;  ///< for Updater::release()
  std::int64_t now_ms = 0;       ///< of the round
  bool fetch = true;             ///< false: only release windows
  /// For ResourceManager::restore_names().
  std::optional<model::AccountNames> names = {};
};
struct WindowAnswer {
  bool fetch = true;  ///< as requested
  /// Nothing if no window is due yet or none was requested.
  std::optional<DueWindow> due = {};
  /// An error if the units could not be fetched. Without an error, users, projects and leads may be
  /// missing, and the metrics that the gaps list.
  Result<FetchedWindow> fetched = FetchedWindow{};
  double seconds = 0;  ///< how long the fetch took
};

/// Runs the updater again for the metrics that a gap lacks.
struct GapRequest {
  store::Gap gap;
  std::vector<model::Unit> units;  ///< as the store returned them
  bool accept_incomplete = false;
};
struct GapAnswer {
  store::Gap gap;
  /// Parts that are no longer configured are empty, which closes the gap. An error if all parts are
  /// still missing.
  Result<store::GapFill> fill;
};

using FetchRequest = std::variant<WindowRequest, GapRequest>;
using FetchAnswer = std::variant<WindowAnswer, GapAnswer>;

/// Carries out a request and returns an answer of the same kind. Exceptions of managers and
/// updaters become errors.
FetchAnswer fetch(UpdateSource& source,
                  const WindowRules& rules,
                  const Clock& clock,
                  FetchRequest request,
                  const std::stop_token& stop);

}  // namespace ceems::ingest
