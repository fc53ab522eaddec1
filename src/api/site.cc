#include "api/site.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/json.h"
#include "config/section.h"

namespace ceems::api {
namespace {

constexpr std::array<std::string_view, 6> kVariables{"uuid",    "cluster", "user",
                                                     "project", "from_ms", "to_ms"};

/// What is wrong with the template; empty if nothing.
std::string mistake_in(std::string_view url) {
  const bool here = url.starts_with('/') && !url.starts_with("//") && !url.starts_with("/\\");
  if (!here && !url.starts_with("https://") && !url.starts_with("http://")) {
    return "expected a URL with http or https, or a path that begins with /";
  }
  // What stands before the path must not depend on a unit, whose names users choose.
  const std::size_t host = here ? 0 : url.find("://") + 3;
  const std::size_t path = std::min(url.find_first_of("/?#", host), url.size());
  for (std::size_t at = url.find('{'); at != std::string_view::npos; at = url.find('{', at + 1)) {
    const std::size_t end = std::min(url.find('}', at), url.size());
    const std::string_view name = url.substr(at + 1, end - at - 1);
    if (end == url.size() || std::ranges::find(kVariables, name) == kVariables.end()) {
      return fmt::format("unknown variable '{{{}}}', expected one of: {{{}}}", name,
                         fmt::join(kVariables, "} {"));
    }
    if (at < path) {
      return "the name of the server cannot contain variables";
    }
  }
  return {};
}

Result<> read_link(const config::Node& node, SiteOptions& site) {
  UnitLink link;
  config::Section section(node);
  section.only({"name", "url", "clusters"})
      .text("name", link.name)
      .text("url", link.url)
      .list("clusters", link.clusters)
      .refuse(link.name.empty(), "name", "expected the text of the link");
  const std::string mistake = mistake_in(link.url);
  section.refuse(!mistake.empty(), "url", mistake);
  if (section.ok()) {
    site.unit_links.push_back(std::move(link));
  }
  return section.done();
}

}  // namespace

Result<SiteOptions> read_site(const config::Node& node) {
  SiteOptions site;
  config::Section section(node);
  section.only({"unit_links", "help_url"}).text("help_url", site.help_url);
  section.each("unit_links", [&](const config::Node& link) { return read_link(link, site); });
  if (!section.ok()) {
    return fail(section.done().error());
  }
  return site;
}

std::string site_json(const SiteOptions& site) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().key("unit_links").begin_array();
  for (const UnitLink& link : site.unit_links) {
    json.begin_object().member("name", link.name).member("url", link.url);
    json.key("clusters").begin_array();
    for (const std::string& cluster : link.clusters) {
      json.value(cluster);
    }
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return text;
}

}  // namespace ceems::api
