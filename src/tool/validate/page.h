#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tool/validate/record.h"

namespace ceems::tool::validate {

/// What a validation needs of a page of ceems_exporter. Energies are counters in joules.
struct ExporterPage {
  std::map<std::string, double, std::less<>> units;  ///< of the domain "node", by uuid
  std::map<std::string, double, std::less<>> node;   ///< of the domain "node", by source
  std::vector<EnergySource> sources;                 ///< sorted, each once
  std::vector<std::string> gpus;                     ///< model of each GPU
  std::string version;                               ///< of the exporter; empty if missing

  /// Of the node, from all sources.
  [[nodiscard]] double node_joules() const;
};

/// Reads a page in the text format of Prometheus. Lines of other families are skipped. kNoData if
/// the page has no energy of the node: the exporter needs --collector.energy.
Result<ExporterPage> parse_exporter_page(std::string_view text);

}  // namespace ceems::tool::validate
