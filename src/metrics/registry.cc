#include "metrics/registry.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/strings.h"
#include "base/version.h"

namespace ceems::metrics {
namespace {

template <typename Metric>
Metric make_metric([[maybe_unused]] std::span<const double> bounds) {
  if constexpr (std::is_same_v<Metric, Histogram>) {
    return Histogram(bounds);
  } else {
    return Metric();
  }
}

template <typename Metric>
Family<Metric>& find_or_create(std::deque<Family<Metric>>& families,
                               Desc desc,
                               std::span<const double> bounds = {}) {
  const auto found = std::ranges::find(families, desc.name, &Family<Metric>::name);
  return found != families.end() ? *found : families.emplace_back(std::move(desc), bounds);
}

}  // namespace

template <typename Metric>
Family<Metric>::Series::Series(std::span<const std::string_view> values,
                               std::span<const double> bounds)
    : label_values(values.begin(), values.end()), metric(make_metric<Metric>(bounds)) {}

template <typename Metric>
Family<Metric>::Family(Desc desc, std::span<const double> bounds)
    : desc_(std::move(desc)), bounds_(bounds) {}

template <typename Metric>
Metric& Family<Metric>::with(std::initializer_list<std::string_view> label_values) {
  CEEMS_CHECK(label_values.size() == desc_.label_names.size());
  const MutexLock lock(mutex_);
  for (Series& series : series_) {
    if (std::ranges::equal(series.label_values, label_values)) {
      return series.metric;
    }
  }
  return series_.emplace_back(std::span(label_values.begin(), label_values.size()), bounds_).metric;
}

template <typename Metric>
Family<Metric>& Family<Metric>::hide_zeros() {
  const MutexLock lock(mutex_);
  hide_zeros_ = true;
  return *this;
}

template <typename Metric>
void Family<Metric>::add_to(Sink& sink) const
  requires(!std::is_same_v<Metric, Histogram>)
{
  std::vector<std::string_view> values;
  const MutexLock lock(mutex_);
  for (const Series& series : series_) {
    const auto value = static_cast<double>(series.metric.value());
    if (value != 0 || !hide_zeros_) {
      values.assign(series.label_values.begin(), series.label_values.end());
      sink.add(desc_, value, values);
    }
  }
}

template <typename Metric>
void Family<Metric>::append_to(std::string& page) const
  requires(std::is_same_v<Metric, Histogram>)
{
  append_histogram_header(page, desc_.name, desc_.help);
  std::string labels;
  const MutexLock lock(mutex_);
  for (const Series& series : series_) {
    labels.clear();
    for (const std::size_t i : desc_.sorted) {
      labels.append(labels.empty() ? "" : ",").append(desc_.label_names[i]).append("=\"");
      append_escaped(labels, series.label_values[i], true);
      labels += '"';
    }
    series.metric.append(page, desc_.name, labels);
  }
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

Registry::Registry(std::string_view program, std::string_view process)
    : build_info_(std::string(program) + "_build_info",
                  "Version of the program; the value is always 1.",
                  Type::kGauge,
                  {"branch", "goarch", "goos", "goversion", "revision", "tags", "version"}),
      process_(process) {}

Family<Counter>& Registry::counters(std::string name,
                                    std::string help,
                                    std::vector<std::string> labels) {
  Desc desc(std::move(name), std::move(help), Type::kCounter, std::move(labels));
  const MutexLock lock(mutex_);
  return find_or_create(counters_, std::move(desc));
}

Family<Gauge>& Registry::gauges(std::string name,
                                std::string help,
                                std::vector<std::string> labels) {
  Desc desc(std::move(name), std::move(help), Type::kGauge, std::move(labels));
  const MutexLock lock(mutex_);
  return find_or_create(gauges_, std::move(desc));
}

Family<Histogram>& Registry::histograms(std::string name,
                                        std::string help,
                                        std::vector<std::string> labels,
                                        std::span<const double> bounds) {
  Desc desc(std::move(name), std::move(help), Type::kHistogram, std::move(labels));
  const MutexLock lock(mutex_);
  return find_or_create(histograms_, std::move(desc), bounds);
}

Counter& Registry::counter(std::string name, std::string help) {
  return counters(std::move(name), std::move(help), {}).with({});
}

Gauge& Registry::gauge(std::string name, std::string help) {
  return gauges(std::move(name), std::move(help), {}).with({});
}

void Registry::add_build_info(Sink& sink) const {
  const Version& about = version();
  std::string_view platform = about.platform;
  const std::string_view system = take_until(platform, '/');
  sink.add(build_info_, 1, {about.branch, platform, system, "", about.revision, "", about.version});
}

void Registry::add_all(Sink& sink) {
  add_build_info(sink);
  for (const auto& family : counters_) {
    family.add_to(sink);
  }
  for (const auto& family : gauges_) {
    family.add_to(sink);
  }
  process_.add(sink);
}

void Registry::add_to(Sink& sink) {
  const MutexLock lock(mutex_);
  add_all(sink);
}

void Registry::append_page(std::string& out, const std::function<void(Sink&)>& add_more) {
  const MutexLock lock(mutex_);
  sink_.clear();
  add_all(sink_);
  if (add_more) {
    add_more(sink_);
  }
  sink_.render(Exposition::kText, out);
  for (const auto& family : histograms_) {
    family.append_to(out);
  }
}

}  // namespace ceems::metrics
