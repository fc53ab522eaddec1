#pragma once

#include <string>
#include <string_view>
#include <vector>

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

/// What the web page shows of this site: the block `ui` of the configuration file.
struct SiteOptions {
  std::vector<UnitLink> unit_links = {};
  /// Where people get help: a URL or an address, at the end of reports. Empty: not shown.
  std::string help_url = {};
};

/// Reads the block. Errors: kInvalidArgument with file, line and key; a link to anything but a web
/// page, or with a variable that is not known, is one.
Result<SiteOptions> read_site(const config::Node& node);

/// The row that the endpoint `site` answers with.
std::string site_json(const SiteOptions& site);

}  // namespace ceems::api
