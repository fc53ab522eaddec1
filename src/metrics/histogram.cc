#include "metrics/histogram.h"

#include <algorithm>
#include <array>

#include "metrics/sink.h"

namespace ceems::metrics {
namespace {

constexpr std::array kLatencies = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                   0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

void append_series(std::string& out,
                   std::string_view name,
                   std::string_view suffix,
                   std::string_view labels,
                   double value) {
  out.append(name).append(suffix);
  if (!labels.empty()) {
    out.append("{").append(labels).append("}");
  }
  out += ' ';
  append_number(out, value);
  out += '\n';
}

}  // namespace

std::span<const double> Histogram::latencies() {
  return kLatencies;
}

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), counts_(std::make_unique<std::atomic<std::uint64_t>[]>(bounds.size() + 1)) {}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  counts_[static_cast<std::size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::append(std::string& out, std::string_view name, std::string_view labels) const {
  std::uint64_t count = 0;
  std::string with_bound;
  for (std::size_t i = 0; i <= bounds_.size(); ++i) {
    count += counts_[i].load(std::memory_order_relaxed);
    with_bound = labels;
    with_bound += labels.empty() ? "le=\"" : ",le=\"";
    if (i < bounds_.size()) {
      append_number(with_bound, bounds_[i]);
    } else {
      with_bound += "+Inf";
    }
    with_bound += '"';
    append_series(out, name, "_bucket", with_bound, static_cast<double>(count));
  }
  append_series(out, name, "_sum", labels, sum_.load(std::memory_order_relaxed));
  append_series(out, name, "_count", labels, static_cast<double>(count));
}

void append_histogram_header(std::string& out, std::string_view name, std::string_view help) {
  out.append("# HELP ").append(name).append(" ").append(help);
  out.append("\n# TYPE ").append(name).append(" histogram\n");
}

}  // namespace ceems::metrics
