#include "metrics/sink.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/log.h"
#include "base/strings.h"
#include "base/utf8.h"

namespace ceems::metrics {
namespace {

constexpr std::string_view kCounterSuffix = "_total";
/// With more than this many unused families, clear() forgets them.
constexpr std::size_t kIdleFamilies = 256;

/// The label values in label-name order, each followed by NUL, are both the identity and the sort
/// key of a series. Values never contain NUL: Prometheus text parsers take it for the end of the
/// page, so it is replaced like invalid UTF-8.
constexpr char kKeyEnd = '\0';

void append_value(std::string& key, std::string_view value) {
  append_clean_text(key, value);
  key.push_back(kKeyEnd);
}

std::string_view type_text(Type type) {
  if (type == Type::kUntyped) {
    return "untyped";
  }
  return type == Type::kCounter ? "counter" : "gauge";
}

/// A set of label names of a family. Nearly all families have only one.
struct Shape {
  std::vector<std::string> labels;  ///< sorted
  /// The texts before the values: `name{a="`, `",b="`. Empty without labels.
  std::vector<std::string> openings;

  Shape(const std::string& name, const Desc& desc) {
    for (const std::size_t i : desc.sorted) {
      labels.push_back(desc.label_names[i]);
      openings.push_back((openings.empty() ? name + "{" : "\",") + labels.back() + "=\"");
    }
  }
  [[nodiscard]] bool fits(const Desc& desc) const {
    const auto name = [&desc](std::size_t i) -> const std::string& { return desc.label_names[i]; };
    return std::ranges::equal(labels, desc.sorted, {}, {}, name);
  }
};

struct Sample {
  std::size_t key;  ///< offset in the arena
  std::uint32_t key_length;
  std::uint32_t shape;
  double value;
};

struct SinkFamily {
  std::string name;
  std::string help;
  Type type = Type::kGauge;
  std::vector<Shape> shapes;
  std::string text_header;
  std::vector<Sample> samples;
  std::size_t settled = 0;  ///< samples that are sorted and without duplicates
  std::uint64_t dropped = 0;
  bool complained = false;  ///< set after the log line, until a page has no drops in this family

  void define(const Desc& desc) {
    name = desc.name;
    help = desc.help;
    type = desc.type;
    shapes.clear();
    text_header = "# HELP " + name + " ";
    append_escaped(text_header, help, false);
    text_header += "\n# TYPE " + name + " " + std::string(type_text(type)) + "\n";
  }

  std::uint32_t shape_of(const Desc& desc) {
    std::uint32_t index = 0;
    while (index < shapes.size() && !shapes[index].fits(desc)) {
      ++index;
    }
    if (index == shapes.size()) {
      shapes.emplace_back(name, desc);
    }
    return index;
  }

  void complain(std::string_view what) {
    ++dropped;
    if (!std::exchange(complained, true)) {
      log::error("metric dropped", {{"family", name}, {"reason", what}});
    }
  }
};

}  // namespace

void append_escaped(std::string& out, std::string_view text, bool quote) {
  while (true) {
    const std::size_t at = text.find_first_of(quote ? std::string_view("\\\n\"") : "\\\n");
    out.append(text.substr(0, at));
    if (at == std::string_view::npos) {
      return;
    }
    out.append(text[at] == '\n' ? "\\n" : text[at] == '"' ? "\\\"" : "\\\\");
    text.remove_prefix(at + 1);
  }
}

struct Sink::Impl {
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };

  std::unordered_map<std::string, std::unique_ptr<SinkFamily>, Hash, std::equal_to<>> families;
  std::vector<SinkFamily*> by_name;
  std::string arena;  ///< keys of all samples

  SinkFamily& family_of(const Desc& desc) {
    const auto found = families.find(std::string_view(desc.name));
    if (found != families.end()) {
      return *found->second;
    }
    SinkFamily& family = *families.emplace(desc.name, std::make_unique<SinkFamily>()).first->second;
    family.define(desc);
    by_name.insert(std::ranges::lower_bound(by_name, family.name, {}, &SinkFamily::name), &family);
    return family;
  }

  [[nodiscard]] std::string_view key(const Sample& sample) const {
    return std::string_view(arena).substr(sample.key, sample.key_length);
  }

  /// Sorts the samples and removes duplicates. Of two equal series the one added first is kept.
  void settle(SinkFamily& family) const {
    auto& samples = family.samples;
    if (family.settled == samples.size()) {
      return;
    }
    // Series with fewer labels come first, as in Prometheus client libraries.
    const auto before = [&](const Sample& a, const Sample& b) {
      if (a.shape != b.shape) {
        const auto labels = [&](const Sample& s) { return family.shapes[s.shape].labels.size(); };
        return std::pair(labels(a), a.shape) < std::pair(labels(b), b.shape);
      }
      const int order = key(a).compare(key(b));
      return order != 0 ? order < 0 : a.key < b.key;
    };
    if (!std::ranges::is_sorted(samples, before)) {
      std::ranges::sort(samples, before);
    }
    const auto same = [this](const Sample& a, const Sample& b) {
      return a.shape == b.shape && key(a) == key(b);
    };
    const auto rest = std::ranges::unique(samples, same);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      family.complain("another series with the same labels was added before");
    }
    samples.erase(rest.begin(), rest.end());
    family.settled = samples.size();
  }

  void settle() const {
    for (SinkFamily* family : by_name) {
      settle(*family);
    }
  }

  void append_series(std::string& out, const SinkFamily& family) const {
    for (const Sample& sample : family.samples) {
      const Shape& shape = family.shapes[sample.shape];
      if (shape.labels.empty()) {
        out.append(family.name);
      } else {
        std::string_view rest = key(sample);
        for (const std::string& opening : shape.openings) {
          out.append(opening);
          append_escaped(out, take_until(rest, kKeyEnd), true);
        }
        out.append("\"}");
      }
      out.push_back(' ');
      append_number(out, sample.value);
      out.push_back('\n');
    }
  }

  /// OpenMetrics names the family of a counter without the suffix _total of its samples. It has no
  /// counters without this suffix, so their type is "unknown".
  void append_open_metrics_header(std::string& out, const SinkFamily& family) const {
    std::string_view name = family.name;
    std::string_view type = family.type == Type::kGauge ? "gauge" : "unknown";
    if (family.type == Type::kCounter) {
      const bool suffixed = name.ends_with(kCounterSuffix) && name.size() > kCounterSuffix.size();
      const std::string_view stem =
          name.substr(0, suffixed ? name.size() - kCounterSuffix.size() : 0);
      const auto taken = families.find(stem);
      if (suffixed && (taken == families.end() || taken->second->samples.empty())) {
        name = stem;
        type = "counter";
      }
    }
    out.append("# HELP ").append(name).push_back(' ');
    append_escaped(out, family.help, true);
    out.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
  }
};

Sink::Sink() : impl_(std::make_unique<Impl>()) {}
Sink::~Sink() = default;
Sink::Sink(Sink&&) noexcept = default;
Sink& Sink::operator=(Sink&&) noexcept = default;

void Sink::add(const Desc& desc, double value, std::span<const std::string_view> label_values) {
  CEEMS_CHECK(desc.type != Type::kHistogram);
  CEEMS_CHECK(label_values.size() == desc.label_names.size());
  SinkFamily& family = impl_->family_of(desc);
  if (family.type != desc.type || family.help != desc.help) {
    if (!family.samples.empty()) {
      family.complain("the same name was added before with another type or help text");
      return;
    }
    family.define(desc);
  }
  const std::size_t start = impl_->arena.size();
  for (const std::size_t i : desc.sorted) {
    append_value(impl_->arena, label_values[i]);
  }
  const auto length = static_cast<std::uint32_t>(impl_->arena.size() - start);
  family.samples.push_back({start, length, family.shape_of(desc), value});
}

void Sink::render(Exposition exposition, std::string& out) {
  impl_->settle();
  for (const SinkFamily* family : impl_->by_name) {
    if (family->samples.empty()) {
      continue;
    }
    if (exposition == Exposition::kText) {
      out.append(family->text_header);
    } else {
      impl_->append_open_metrics_header(out, *family);
    }
    impl_->append_series(out, *family);
  }
  if (exposition == Exposition::kOpenMetrics) {
    out.append("# EOF\n");
  }
}

std::uint64_t Sink::dropped() const {
  impl_->settle();
  std::uint64_t count = 0;
  for (const SinkFamily* family : impl_->by_name) {
    count += family->dropped;
  }
  return count;
}

std::uint64_t Sink::samples() const {
  impl_->settle();
  std::uint64_t count = 0;
  for (const SinkFamily* family : impl_->by_name) {
    count += family->samples.size();
  }
  return count;
}

void Sink::clear() {
  std::size_t idle = 0;
  for (SinkFamily* family : impl_->by_name) {
    idle += family->samples.empty() ? 1U : 0U;
    family->complained = family->complained && family->dropped > 0;
    family->samples.clear();
    family->settled = 0;
    family->dropped = 0;
  }
  impl_->arena.clear();
  if (idle > kIdleFamilies) {
    impl_->by_name.clear();
    impl_->families.clear();
  }
}

}  // namespace ceems::metrics
