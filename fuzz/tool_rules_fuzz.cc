#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "config/yaml.h"
#include "tool/rules/discovery.h"
#include "tool/rules/groups.h"
#include "tool/rules/promql.h"
#include "tool/rules/render.h"

// Names of jobs, hosts and chassis come from Prometheus. Whatever they hold, files stay in their
// directory and are YAML with the same names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ceems::tool::rules;  // NOLINT(google-build-using-namespace): one function
  const std::string text =
      ceems::clean_text({reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 4096)});
  FileNames names;
  const std::string file = names.name(text, ".rules");
  CEEMS_CHECK(file.find('/') == std::string::npos && file.front() != '.' && file.size() <= 255);
  CEEMS_CHECK(names.name(text, ".rules") != file);
  (void)host_of(text);

  Job job{.name = text,
          .series = {"ceems_redfish_current_watts"},
          .hosts = {},
          .counting_hosts = {},
          .chassis = {text},
          .chips = {},
          .scrape_interval = std::chrono::seconds(15)};
  const HostPlan plan{
      .job = &job, .family = Family::kRedfish, .chassis = text, .chip = {}, .gpus = {}};
  Common common;
  common.interval = "15s";
  common.emissions.grams_per_kwh = 50;
  common.emissions.country_code = text;
  const auto groups = host_groups(plan, common);
  const auto document = ceems::config::parse_yaml(rule_file(groups), "rules");
  CEEMS_CHECK(document.has_value());
  const auto items = (*document)["groups"].items();
  CEEMS_CHECK(items.size() == groups.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    CEEMS_CHECK(*items[i]["name"].as_string() == groups[i].name);
    const auto rules = items[i]["rules"].items();
    CEEMS_CHECK(rules.size() == groups[i].rules.size());
    for (std::size_t j = 0; j < rules.size(); ++j) {
      CEEMS_CHECK(*rules[j]["expr"].as_string() == groups[i].rules[j].expression);
    }
  }
  return 0;
}
