#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/racks.h"
#include "base/result.h"
#include "config/yaml.h"

namespace ceems::api {

/// A link on the page of each unit, for instance to its profiles.
struct UnitLink {
  std::string name = {};
  /// http, https, or a path on this server. The page replaces {uuid}, {cluster}, {user}, {project},
  /// {from_ms} and {to_ms} (milliseconds since 1970) by what they are of the unit, escaped.
  std::string url = {};
  std::vector<std::string> clusters = {};  ///< whose units have it; empty: all
};

/// What energy and time cost, in the currency of the site.
struct Prices {
  std::optional<double> kwh = {}, core_hour = {}, gpu_hour = {};

  [[nodiscard]] bool any() const { return kwh || core_hour || gpu_hour; }
};

/// What a project may use in a month.
struct Budget {
  std::string cluster = {}, project = {};
  double kwh_per_month = 0;
};

/// A configured cluster.
struct SiteCluster {
  std::string id = {}, manager = {};
  std::string slurm_name = {};  ///< that SLURM gives it; empty: the id, or not SLURM
  bool series = false;          ///< it has a TSDB
};

/// What the web page shows of this site: the block `ui` of the configuration file.
struct SiteOptions {
  std::vector<UnitLink> unit_links = {};
  std::string name = {}, currency = {}, help_url = {};
  std::string unit_word = {};  ///< unit, job, vm or pod; empty: what the managers call them
  Prices prices = {};
  std::optional<double> pue = {};
  std::vector<Budget> budgets = {};
  Racks racks = {};
  /// Origins whose pages may show the page in a frame: "https://portal.example.org".
  std::vector<std::string> embed_ancestors = {};
  // Not in this block; for answers.
  std::vector<SiteCluster> clusters = {};
  std::string time_zone = {};
  bool tokens = false;  ///< people can make personal tokens

  /// help_url as texts show it: a mail address without "mailto:".
  [[nodiscard]] std::string help_text() const;
};

/// Reads the block. Errors: kInvalidArgument with file, line and key; a link to anything but a web
/// page, or with a variable that is not known, is one. Relative names of files start at
/// `directory`.
Result<SiteOptions> read_site(const config::Node& node, const std::string& directory = {});

/// What the database says of a cluster: of its newest units.
struct ClusterFacts {
  bool gpus = false, partitions = false;
  std::optional<std::int64_t> updated_ms = {};  ///< to when its data was read
};

/// The row that the endpoint `site` answers with. `facts` are the facts of each of the clusters;
/// `priced` says whether answers have costs, `shown` whose budgets it has.
std::string site_json(const SiteOptions& site,
                      const std::vector<ClusterFacts>& facts,
                      bool priced,
                      const std::function<bool(const Budget& budget)>& shown);

}  // namespace ceems::api
