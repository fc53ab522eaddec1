#include "exporter/collector_set.h"

#include <utility>

namespace ceems::exporter {

CollectorSet::CollectorSet(std::vector<CollectorSpec> specs) : specs_(std::move(specs)) {
  for (const CollectorSpec& spec : specs_) {
    switches_.push_back(spec.enabled_by_default);
  }
}

void CollectorSet::add_option_flags(config::FlagSet& flags) const {
  for (const CollectorSpec& spec : specs_) {
    if (spec.add_flags) {
      spec.add_flags(flags);
    }
  }
}

void CollectorSet::add_switches(config::FlagSet& flags) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    flags.add("collector." + specs_[i].name, switches_[i], {.help = specs_[i].help});
  }
  flags.add("collector.disable-defaults", disable_defaults_,
            {.help = "Turn off every collector that is not named on the command line"});
}

Result<std::vector<NamedCollector>> CollectorSet::create(const config::FlagSet& flags,
                                                         CollectorContext& context) const {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const bool off = flags.given("collector." + specs_[i].name) && !switches_[i];
    if (!specs_[i].prepare || off) {
      continue;
    }
    if (auto prepared = specs_[i].prepare(context); !prepared) {
      return fail(std::move(prepared).error().with_context("collector " + specs_[i].name));
    }
  }
  std::vector<NamedCollector> collectors;
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const CollectorSpec& spec = specs_[i];
    bool enabled = switches_[i];
    if (!flags.given("collector." + spec.name)) {
      const bool by_default = spec.enabled_when ? spec.enabled_when(context) : enabled;
      enabled = !disable_defaults_ && by_default;
    }
    if (!enabled) {
      continue;
    }
    auto created = spec.create(context);
    if (!created) {
      return fail(std::move(created).error().with_context("collector " + spec.name));
    }
    if (auto source = (*created)->unit_source()) {
      context.unit_sources.push_back(std::move(source));
    }
    for (auto& meter : (*created)->energy_meters()) {
      context.meters->push_back(std::move(meter));
    }
    collectors.push_back({spec.name, std::move(*created)});
  }
  return collectors;
}

}  // namespace ceems::exporter
