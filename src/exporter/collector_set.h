#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/flags.h"
#include "exporter/collector.h"

namespace ceems::exporter {

/// A collector that is on, with its word.
struct NamedCollector {
  std::string name;
  Stage stage = Stage::kNode;
  std::unique_ptr<Collector> collector;
};

/// The known collectors, their switches on the command line, and which of them are on. Not
/// thread-safe; outlives what create() gives.
class CollectorSet {
 public:
  /// The order of `specs` has no meaning: they are sorted by stage and name.
  explicit CollectorSet(std::vector<CollectorSpec> specs);

  /// Flags of the collectors themselves: --collector.NAME.*
  void add_option_flags(config::FlagSet& flags) const;
  /// --[no-]collector.NAME for each, then --collector.disable-defaults.
  void add_switches(config::FlagSet& flags);

  struct Created {
    std::vector<NamedCollector> collectors;  ///< by stage and name
    Sources sources;                         ///< of all of them
  };
  /// After parsing. Every collector that is not switched off prepares the context; then, stage by
  /// stage, those that are on are created from it and from the sources of the stages before. On are
  /// those whose switch says so; where it is not given, with --collector.disable-defaults none,
  /// else those on by default. The error of a collector comes back with its name in front.
  Result<Created> create(const config::FlagSet& flags, CollectorContext context) const;

  /// By stage and name.
  [[nodiscard]] const std::vector<CollectorSpec>& specs() const { return specs_; }

 private:
  Result<> prepare(const config::FlagSet& flags, CollectorContext& context) const;
  [[nodiscard]] bool is_on(std::size_t index,
                           const config::FlagSet& flags,
                           const CollectorContext& context,
                           const Sources& sources) const;

  std::vector<CollectorSpec> specs_;
  std::deque<bool> switches_;  ///< vector<bool> has no bool& for a flag to write to
  bool disable_defaults_ = false;
};

}  // namespace ceems::exporter
