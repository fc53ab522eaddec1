#include "tool/validate/page.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.h"

namespace ceems::tool::validate {
namespace {

struct PageSample {
  std::string_view name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;

  [[nodiscard]] std::string label(std::string_view key) const {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string() : found->second;
  }
};

/// Takes a quoted value with the escapes of the text format (\\, \", \n).
std::optional<std::string> take_quoted(std::string_view& rest) {
  std::string out;
  if (!take(rest, '"')) {
    return std::nullopt;
  }
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') {
      return out;
    }
    if (c == '\\' && !rest.empty()) {
      out += rest.front() == 'n' ? '\n' : rest.front();
      rest.remove_prefix(1);
    } else {
      out += c;
    }
  }
  return std::nullopt;
}

std::optional<PageSample> parse_sample(std::string_view line) {
  PageSample sample;
  sample.name = line.substr(0, line.find_first_of("{ "));
  std::string_view rest = line.substr(sample.name.size());
  if (take(rest, '{')) {
    while (!take(rest, '}')) {
      std::string key(trim(take_until(rest, '=')));
      auto value = take_quoted(rest);
      if (!value) {
        return std::nullopt;
      }
      sample.labels[std::move(key)] = std::move(*value);
      take(rest, ',');
    }
  }
  const auto value = parse_double(take_word(rest));
  if (!value) {
    return std::nullopt;
  }
  sample.value = *value;
  return sample;
}

/// A source's name without what tells one device from another: "rapl-package-0" is "rapl".
std::string kind_of_source(const std::string& name) {
  return name == "power-model" ? name : name.substr(0, name.find('-'));
}

}  // namespace

double ExporterPage::node_joules() const {
  double sum = 0;
  for (const auto& [source, joules] : node) {
    sum += joules;
  }
  return sum;
}

Result<ExporterPage> parse_exporter_page(std::string_view text) {
  ExporterPage page;
  std::set<EnergySource> sources;
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    const auto sample = line.starts_with("ceems_") ? parse_sample(line) : std::nullopt;
    if (!sample) {
      continue;
    }
    const bool of_node = sample->label("domain") == "node";
    if (sample->name == "ceems_compute_unit_energy_joules_total" && of_node) {
      page.units[sample->label("uuid")] += sample->value;
    } else if (sample->name == "ceems_node_energy_joules_total" && of_node) {
      page.node[sample->label("source")] += sample->value;
    } else if (sample->name == "ceems_energy_source_info") {
      sources.insert({.domain = sample->label("domain"),
                      .kind = kind_of_source(sample->label("source")),
                      .method = sample->label("method")});
    } else if (sample->name == "ceems_gpu_info" && sample->label("gpuiid").empty()) {
      page.gpus.push_back(sample->label("name"));
    } else if (sample->name == "ceems_exporter_build_info") {
      page.version = sample->label("version");
    }
  }
  if (page.node.empty()) {
    return fail(ErrorCode::kNoData,
                "the page has no ceems_node_energy_joules_total of the domain 'node': start the "
                "exporter with --collector.energy");
  }
  page.sources.assign(sources.begin(), sources.end());
  std::ranges::sort(page.gpus);
  return page;
}

}  // namespace ceems::tool::validate
