#include "tool/rules/promql.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/utf8.h"
#include "config/duration.h"
#include "tsdb/client.h"

namespace ceems::tool::rules {
namespace {

std::string gpu_device_labels(GpuKind kind) {
  return kind == GpuKind::kNvidia ? "instancehost, gpuuuid" : "instancehost, index";
}

}  // namespace

std::string copied(const std::string& expression,
                   std::string_view target,
                   std::string_view source) {
  return fmt::format(R"x(label_replace({}, "{}", "$1", "{}", "(.+)"))x", expression, target,
                     source);
}

std::string escaped(std::string_view text) {
  std::string out;
  const std::string clean = clean_text(text);
  std::string_view rest = clean;
  while (!rest.empty()) {
    const std::size_t size = std::max<std::size_t>(1, utf8_length(rest));
    const std::string_view character = rest.substr(0, size);
    rest.remove_prefix(character.size());
    const auto byte = static_cast<unsigned char>(character[0]);
    if (character == "\"" || character == "\\") {
      out += '\\';
      out += character;
    } else if (character == "\n") {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else if (byte == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0) {  // C1 controls
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(character[1]));
    } else if (character == "\u2028" || character == "\u2029") {  // line and paragraph separator
      out += character == "\u2028" ? "\\u2028" : "\\u2029";
    } else if (character == "\ufeff") {  // byte order mark
      out += "\\ufeff";
    } else {
      out += character;
    }
  }
  return out;
}

std::string job_matcher(const std::vector<std::string>& names) {
  if (names.size() == 1) {
    return fmt::format("job=\"{}\"", escaped(names.front()));
  }
  return fmt::format("job=~\"{}\"", escaped(tsdb::exact_regex(names)));
}

std::string selector(std::string_view metric, const Job& job, std::string_view more) {
  return fmt::format("{}{{{}{}{}}}", metric, job_matcher({job.name}), more.empty() ? "" : ",",
                     more);
}

std::string irate(const std::string& selector, std::string_view window) {
  return fmt::format("irate({}[{}])", selector, window);
}

std::string rate_window(const Job& job) {
  return config::prometheus_duration(4 * job.scrape_interval);
}

std::string with_host(const std::string& expression) {
  return fmt::format(
      R"x(label_replace({}, "instancehost", "$1", "instance", "(.*?)(?::[0-9]+)?"))x", expression);
}

std::string with_label(const std::string& expression,
                       std::string_view name,
                       std::string_view value) {
  std::string replacement;  // "$" begins a reference to a group
  for (const char c : value) {
    replacement += c == '$' ? "$$" : std::string(1, c);
  }
  return fmt::format(R"x(label_replace({}, "{}", "{}", "job", ".*"))x", expression, name,
                     escaped(replacement));
}

std::string scaled(double factor, const std::string& expression) {
  return factor == 1 ? expression : fmt::format("{} * {}", factor, expression);
}

std::string with_device_labels(GpuKind kind, const std::string& expression) {
  switch (kind) {
    case GpuKind::kNvidia:
      return copied(copied(expression, "gpuuuid", "UUID"), "gpuiid", "GPU_I_ID");
    case GpuKind::kAmdSmi:  // names the label for the index like the metric without "amd_"
      return copied(copied(copied(expression, "index", "gpu_power"), "index", "gpu_use_percent"),
                    "index", "gpu_memory_use_percent");
    case GpuKind::kAmdDevice:
      return copied(copied(expression, "index", "gpu_id"), "gpuiid", "gpu_partition_id");
  }
  return expression;
}

std::vector<std::string> gpu_power_metrics(const GpuPlan& gpus) {
  switch (gpus.kind) {
    case GpuKind::kNvidia: {
      std::vector<std::string> names;
      for (const char* name : {"DCGM_FI_DEV_POWER_USAGE_INSTANT", "DCGM_FI_DEV_POWER_USAGE"}) {
        if (gpus.job->has(name)) {
          names.emplace_back(name);
        }
      }
      return names;
    }
    case GpuKind::kAmdSmi:
      return {"amd_gpu_power"};
    case GpuKind::kAmdDevice:
      return {"gpu_power_usage"};
  }
  return {};
}

std::string gpu_watts(const GpuPlan& gpus) {
  std::vector<std::string> series;
  for (const std::string& metric : gpu_power_metrics(gpus)) {
    series.push_back(selector(metric, *gpus.job));
  }
  std::string watts = fmt::format("{}", fmt::join(series, " or "));
  if (series.size() > 1) {
    watts = "(" + watts + ")";
  }
  if (gpus.kind == GpuKind::kAmdSmi) {  // microwatts
    watts = "(" + watts + " / 1e6)";
  }
  return with_device_labels(gpus.kind, watts);
}

std::string gpu_watts_by_host(const GpuPlan& gpus) {
  return fmt::format("sum by (instancehost) (max by ({}) ({}))", gpu_device_labels(gpus.kind),
                     with_host(gpu_watts(gpus)));
}

}  // namespace ceems::tool::rules
