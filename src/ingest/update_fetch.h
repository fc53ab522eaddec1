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
  store::ClusterUpdate update;  ///< with the gaps, should it be written like this
  /// Why metrics are missing; nothing when none are.
  std::optional<Error> cause;
  bool lasting = false;                    ///< asking again soon is of no use
  std::optional<Error> people_cause = {};  ///< why users, projects or leads are missing
};

/// Releases complete windows and fetches the next one.
struct WindowRequest {
  std::int64_t start_ms = 0;     ///< of the next window
  std::int64_t complete_ms = 0;  ///< for Updater::release()
  std::int64_t now_ms = 0;       ///< of the round
  bool fetch = true;             ///< false: releases only
};
struct WindowAnswer {
  bool fetch = true;  ///< as requested
  /// Nothing when no window is due yet or none was requested.
  std::optional<DueWindow> due = {};
  /// An error when there are no units; users, projects and leads may be missing, metrics as the
  /// gaps say.
  Result<FetchedWindow> fetched = FetchedWindow{};
  double seconds = 0;  ///< how long that took
};

/// Asks the updater again for what is missing in a gap.
struct GapRequest {
  store::Gap gap;
  std::vector<model::Unit> units;  ///< as the store returned them
  bool accept_incomplete = false;
};
struct GapAnswer {
  store::Gap gap;
  /// Parts that are no longer configured are filled at once, with nothing. kUnavailable when
  /// nothing new is known.
  Result<store::GapFill> fill;
};

using FetchRequest = std::variant<WindowRequest, GapRequest>;
using FetchAnswer = std::variant<WindowAnswer, GapAnswer>;

/// Answers a request, of the same kind. Exceptions of managers and updaters become errors.
FetchAnswer fetch(UpdateSource& source,
                  const WindowRules& rules,
                  const Clock& clock,
                  FetchRequest request,
                  const std::stop_token& stop);

}  // namespace ceems::ingest
