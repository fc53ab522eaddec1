#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/collector.h"

namespace ceems::exporter {

/// An enabled collector with its name.
struct NamedCollector {
  std::string name;  ///< that of the spec, or the alias that turned it on
  Stage stage = Stage::kNode;
  std::unique_ptr<Collector> collector;
};

/// The known collectors, their switches on the command line, and which of them are on. Must outlive
/// the collectors that create() returns. Not thread-safe.
class CollectorSet {
 public:
  /// The order of `specs` does not matter: they are sorted by stage and name.
  explicit CollectorSet(std::vector<CollectorSpec> specs);

  /// Adds the collectors' flags --collector.NAME.*.
  void add_option_flags(config::FlagSet& flags) const;
  /// Adds --[no-]collector.NAME for each collector, then --collector.disable-defaults.
  void add_switches(config::FlagSet& flags);

  struct Created {
    std::vector<NamedCollector> collectors;  ///< by stage and name
    Sources sources;                         ///< of all of them
  };
  /// Call after parsing the flags. First every collector that is not switched off prepares the
  /// context. Then, stage by stage, the enabled ones are created from the context and the sources
  /// of earlier stages. A collector's switch decides whether it is enabled. Without the switch it
  /// has its default, or is disabled with --collector.disable-defaults. Errors name the collector.
  [[nodiscard]] Result<Created> create(const config::FlagSet& flags,
                                       CollectorContext context) const;

  /// Sorted by stage and name.
  [[nodiscard]] const std::vector<CollectorSpec>& specs() const { return specs_; }

 private:
  Result<> prepare(const config::FlagSet& flags, CollectorContext& context) const;
  [[nodiscard]] bool is_on(std::size_t index,
                           const config::FlagSet& flags,
                           const CollectorContext& context,
                           const Sources& sources) const;

  std::vector<CollectorSpec> specs_;
  /// A deque, because a flag needs a bool& to write to, which vector<bool> does not have.
  std::deque<bool> switches_;
  bool disable_defaults_ = false;
};

}  // namespace ceems::exporter
