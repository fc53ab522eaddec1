#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/yaml.h"
#include "model/unit.h"
#include "net/client.h"

namespace ceems::api {

/// One entry of `updaters` in the configuration.
struct UpdaterConfig {
  std::string id;
  std::string kind;  ///< "tsdb"
  std::string web_url;
  net::ClientOptions web;
  config::Node extra;
};

/// Adds metrics of the window to units, in place. Called from one thread at a time.
class Updater {
 public:
  virtual ~Updater() = default;
  /// An error means that the window's metrics are not complete and the window should be tried again
  /// later; the units may then be changed in part and must be thrown away.
  virtual Result<> update(model::Window window,
                          std::vector<model::Unit>& units,
                          std::stop_token stop) = 0;
  /// How long after its end a window must be left alone until everything that belongs to it can be
  /// queried. Thread-safe; may change between calls.
  [[nodiscard]] virtual std::chrono::milliseconds settle() const {
    return std::chrono::milliseconds(0);
  }
};

struct UpdaterSpec {
  std::string kind;
  std::function<Result<std::unique_ptr<Updater>>(const UpdaterConfig&, const Clock&)> create;
};
std::vector<UpdaterSpec> all_updaters();

}  // namespace ceems::api
