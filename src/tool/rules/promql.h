#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "tool/rules/model.h"

// Pieces of PromQL of which the rules are made. Each function returns an expression that can be an
// operand as it is.

namespace ceems::tool::rules {

/// A text for double quotes in PromQL and in YAML: quotes, backslashes and whatever could end a
/// line or a scalar are escaped. Bytes that are not UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

/// job="name", or job=~"a|b" for several.
std::string job_matcher(const std::vector<std::string>& names);
/// metric{job="name",more}
std::string selector(std::string_view metric, const Job& job, std::string_view more = {});
/// irate(selector[window])
std::string irate(const std::string& selector, std::string_view window);
/// The window in which instant rates look for two samples: four scrapes of the job.
std::string rate_window(const Job& job);

/// The expression with the label instancehost: the instance without its port.
std::string with_host(const std::string& expression);
/// Series that have `source` get its value as `target` as well.
std::string copied(const std::string& expression, std::string_view target, std::string_view source);
/// The expression with label `name` set to `value` everywhere.
std::string with_label(const std::string& expression,
                       std::string_view name,
                       std::string_view value);
/// The expression times the factor, which is left out if it is 1.
std::string scaled(double factor, const std::string& expression);

/// Power of each GPU in watts, one series for each device and row of the GPU exporter, with the
/// labels by which units name devices: gpuuuid and gpuiid (NVIDIA), or index and gpuiid (AMD),
/// whether or not the labels of the exporter were changed when it was scraped.
std::string gpu_watts(const GpuPlan& gpus);
/// The same for a vector expression over one metric of the GPU exporter.
std::string with_device_labels(GpuKind kind, const std::string& expression);
/// The names of the metrics of power that the job exports, the best first.
std::vector<std::string> gpu_power_metrics(const GpuPlan& gpus);
/// The sum of gpu_watts() by instancehost. A device that the exporter reports several times, as
/// instances of one GPU, counts once.
std::string gpu_watts_by_host(const GpuPlan& gpus);

}  // namespace ceems::tool::rules
