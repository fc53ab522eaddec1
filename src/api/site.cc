#include "api/site.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "api/answer/numbers.h"
#include "api/login/cookies.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/version.h"
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

Result<> read_budget(const config::Node& node, SiteOptions& site) {
  Budget budget;
  config::Section section(node);
  section.only({"cluster", "project", "kwh_per_month"})
      .text("cluster", budget.cluster)
      .text("project", budget.project)
      .number("kwh_per_month", budget.kwh_per_month)
      .refuse(budget.cluster.empty(), "cluster", "expected the ID of a cluster")
      .refuse(budget.project.empty(), "project", "expected the name of a project")
      .refuse(!(budget.kwh_per_month > 0), "kwh_per_month", "expected a number above 0");
  if (section.ok()) {
    site.budgets.push_back(std::move(budget));
  }
  return section.done();
}

Result<> read_embed(const config::Node& node, SiteOptions& site) {
  config::Section section(node);
  section.only({"ancestors"}).list("ancestors", site.embed_ancestors);
  for (const std::string& ancestor : site.embed_ancestors) {
    // Exactly an origin: what else a policy may hold would let more pages in than are named.
    section.refuse(ancestor.empty() || login::origin_of(ancestor) != ancestor, "ancestors",
                   fmt::format("expected origins such as https://portal.example.org, got '{}'",
                               printable(ancestor, 80)));
  }
  return section.done();
}

void read_number(config::Section& section,
                 std::string_view key,
                 double least,
                 std::optional<double>& target) {
  if (!section.node()[key].present()) {
    return;
  }
  double number = 0;
  section.number(key, number);
  section.refuse(!std::isfinite(number) || number < least, key,
                 fmt::format("expected a number from {}", least));
  target = number;
}

}  // namespace

std::string SiteOptions::help_text() const {
  constexpr std::string_view kMail = "mailto:";
  return help_url.starts_with(kMail) ? help_url.substr(kMail.size()) : help_url;
}

Result<SiteOptions> read_site(const config::Node& node, const std::string& directory) {
  SiteOptions site;
  config::Section section(node);
  section
      .only({"unit_links", "name", "currency", "help_url", "price_kwh", "price_core_hour",
             "price_gpu_hour", "pue", "budgets", "racks", "unit_word", "embed"})
      .text("name", site.name)
      .text("currency", site.currency)
      .text("help_url", site.help_url)
      .text("unit_word", site.unit_word)
      .each("unit_links", [&](const config::Node& link) { return read_link(link, site); })
      .each("budgets", [&](const config::Node& budget) { return read_budget(budget, site); });
  read_number(section, "price_kwh", 0, site.prices.kwh);
  read_number(section, "price_core_hour", 0, site.prices.core_hour);
  read_number(section, "price_gpu_hour", 0, site.prices.gpu_hour);
  read_number(section, "pue", 1, site.pue);
  constexpr auto kWords = std::to_array<std::string_view>({"", "unit", "job", "vm", "pod"});
  section.refuse(std::ranges::find(kWords, site.unit_word) == kWords.end(), "unit_word",
                 "expected unit, job, vm or pod");
  section.refuse(site.prices.any() && site.currency.empty(), "currency",
                 "expected a currency beside the prices, such as EUR");
  if (!site.help_url.empty() && !site.help_url.starts_with("mailto:")) {
    const std::string mistake = mistake_in(site.help_url);
    section.refuse(!mistake.empty(), "help_url", mistake);
  }
  section.also(read_embed(node["embed"], site));
  CEEMS_TRY(section.done());
  CEEMS_TRY(racks, Racks::read(node["racks"], directory));
  site.racks = std::move(racks);
  return site;
}

std::string site_json(const SiteOptions& site,
                      const std::vector<ClusterFacts>& facts,
                      bool priced,
                      const std::function<bool(const Budget& budget)>& shown) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("name", site.name).member("currency", site.currency);
  json.member("help_url", site.help_url).member("time_zone", site.time_zone);
  json.member("unit_word", site.unit_word).member("version", version().version);
  json.raw_member("languages", R"(["en"])").key("unit_links").begin_array();
  for (const UnitLink& link : site.unit_links) {
    json.begin_object().member("name", link.name).member("url", link.url);
    json.key("clusters").begin_array();
    for (const std::string& cluster : link.clusters) {
      json.value(cluster);
    }
    json.end_array().end_object();
  }
  json.end_array();
  const auto number = [&json](std::string_view name, std::optional<double> value) {
    json.key(name);
    append_number(json, value);
  };
  json.member("priced", priced).member("tokens", site.tokens);
  number("price_kwh", site.prices.kwh);
  number("price_core_hour", site.prices.core_hour);
  number("price_gpu_hour", site.prices.gpu_hour);
  number("pue", site.pue);
  json.key("budgets").begin_array();
  for (const Budget& budget : site.budgets) {
    if (shown(budget)) {
      json.begin_object().member("cluster", budget.cluster).member("project", budget.project);
      number("kwh_per_month", budget.kwh_per_month);
      json.end_object();
    }
  }
  json.end_array().key("clusters").begin_array();
  for (std::size_t i = 0; i < site.clusters.size(); ++i) {
    const SiteCluster& cluster = site.clusters[i];
    const ClusterFacts known = i < facts.size() ? facts[i] : ClusterFacts{};
    json.begin_object().member("id", cluster.id).member("manager", cluster.manager);
    json.member("series", cluster.series).member("nodes", cluster.series);
    json.member("gpus", known.gpus).member("partitions", known.partitions).key("updated");
    if (known.updated_ms) {
      json.value(*known.updated_ms);
    } else {
      json.value(nullptr);
    }
    json.end_object();
  }
  json.end_array().end_object();
  return text;
}

}  // namespace ceems::api
