#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/accounting/budgets.h"
#include "api/accounting/market.h"
#include "api/accounting/prices.h"
#include "api/accounting/resources.h"
#include "api/site.h"
#include "base/result.h"
#include "base/time/time_zone.h"
#include "config/yaml.h"
#include "facility/embodied.h"
#include "facility/options.h"

namespace ceems::api {

/// The block `accounting` of the configuration file, with the files that it names.
struct AccountingOptions {
  PriceOptions prices = {};
  std::vector<ProjectBudget> budgets = {};
  std::vector<Resource> resources = {};
  std::vector<MarketRule> market = {};  ///< of those that hold at a moment, the last one counts
  // PromQL for watts; empty: not known.
  std::string other_power = {};     ///< of storage, network and service nodes
  std::string cooling_power = {};   ///< of cooling and losses
  std::string series_cluster = {};  ///< whose TSDB has these; empty: the first
  bool billed = false;              ///< also show parts that are scaled to the bill
  std::vector<std::string> idle_exempt_partitions = {};
  facility::FacilityOptions facility = {};
  facility::EmbodiedOptions embodied = {};
};

/// Reads the block. Without `prices`, `budgets`, `resources`, `facility` or `embodied`, the files
/// prices.yml and so on in `directory` are read if they exist. The prices and budgets of `site` are
/// not among them. kInvalidArgument with file, line and key.
Result<AccountingOptions> read_accounting(const config::Node& node,
                                          const std::string& directory,
                                          const SiteOptions& site,
                                          const TimeZone& zone);

}  // namespace ceems::api
