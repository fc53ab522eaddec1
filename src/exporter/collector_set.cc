#include "exporter/collector_set.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace ceems::exporter {
namespace {

void append(Sources& to, Sources from) {
  std::ranges::move(from.units, std::back_inserter(to.units));
  std::ranges::move(from.meters, std::back_inserter(to.meters));
  std::ranges::move(from.devices, std::back_inserter(to.devices));
  if (from.sampler != nullptr) {
    to.sampler = std::move(from.sampler);
  }
}

/// The name by which the command line calls the collector: `ipmi` for one that --collector.ipmi
/// turned on, although it is `ipmi_dcmi`.
std::string name_on_page(const CollectorSpec& spec, const config::FlagSet& flags) {
  constexpr std::string_view kPrefix = "collector.";
  const std::string flag = flags.spelling("collector." + spec.name);
  return flag.starts_with(kPrefix) ? flag.substr(kPrefix.size()) : spec.name;
}

}  // namespace

CollectorSet::CollectorSet(std::vector<CollectorSpec> specs) : specs_(std::move(specs)) {
  std::ranges::sort(specs_, {}, [](const CollectorSpec& spec) {
    return std::tuple<Stage, const std::string&>(spec.stage, spec.name);
  });
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

Result<> CollectorSet::prepare(const config::FlagSet& flags, CollectorContext& context) const {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const bool off = flags.given("collector." + specs_[i].name) && !switches_[i];
    if (!specs_[i].prepare || off) {
      continue;
    }
    CEEMS_TRY_IN("collector " + specs_[i].name, specs_[i].prepare(context));
  }
  return {};
}

bool CollectorSet::is_on(std::size_t index,
                         const config::FlagSet& flags,
                         const CollectorContext& context,
                         const Sources& sources) const {
  const CollectorSpec& spec = specs_[index];
  if (flags.given("collector." + spec.name)) {
    return switches_[index];
  }
  if (disable_defaults_) {
    return false;
  }
  return spec.enabled_when ? spec.enabled_when(context, sources) : spec.enabled_by_default;
}

Result<CollectorSet::Created> CollectorSet::create(const config::FlagSet& flags,
                                                   CollectorContext context) const {
  CEEMS_TRY(prepare(flags, context));
  Created created;
  Sources of_stage;  // kept apart, because collectors of a stage do not see each other's
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    const CollectorSpec& spec = specs_[i];
    if (i > 0 && specs_[i - 1].stage != spec.stage) {
      append(created.sources, std::exchange(of_stage, {}));
    }
    if (!is_on(i, flags, context, created.sources)) {
      continue;
    }
    CEEMS_TRY_IN("collector " + spec.name, collector, spec.create(context, created.sources));
    append(of_stage, collector->sources());
    created.collectors.push_back({name_on_page(spec, flags), spec.stage, std::move(collector)});
  }
  append(created.sources, std::move(of_stage));
  return created;
}

}  // namespace ceems::exporter
