#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/yaml.h"

namespace ceems::config {

/// Top-level keys of the configuration file. Programs may share one file; each reads its own keys.
inline constexpr std::array<std::string_view, 14> kTopLevelKeys = {
    "ceems_api_server",   "clusters", "updaters",      "ceems_lb",       "ceems_exporter",
    "ceems_tool",         "cacct",    "redfish_proxy", "redfish_config", "redfish_collector",
    "redfish_web_config", "tsdb",     "logging",       "ceems_profiler",
};

/// Keys of `ceems_api_server`, which ceems_lb and cacct also read.
inline constexpr std::array<std::string_view, 15> kApiServerKeys = {
    "data",  "admin",  "web",  "identity", "roles",      "series",           "audit",
    "ui",    "report", "mail", "profiles", "cluster_id", "user_header_name", "accounting",
    "export"};

/// Reads the keys of one mapping into variables. A variable keeps its value when its key is absent.
/// The first error is kept for done(), and later keys are not read. Not thread-safe.
class Section {
 public:
  explicit Section(const Node& node) : node_(node) {
    if (node_.present() && !node_.is_map()) {
      done_ = fail(node_.error("expected a mapping"));
    }
  }

  Section& only(std::initializer_list<std::string_view> known) {
    return only(std::span(known.begin(), known.size()));
  }
  Section& only(std::span<const std::string_view> known) {
    if (done_) {
      done_ = node_.only_keys(known);
    }
    return *this;
  }
  Section& text(std::string_view key, std::string& target) {
    return take(key, target, &Node::as_string);
  }
  Section& boolean(std::string_view key, bool& target) { return take(key, target, &Node::as_bool); }
  Section& integer(std::string_view key, std::int64_t& target) {
    return take(key, target, &Node::as_int);
  }
  Section& number(std::string_view key, double& target) {
    return take(key, target, &Node::as_double);
  }
  Section& list(std::string_view key, std::vector<std::string>& target) {
    return take(key, target, &Node::as_string_list);
  }
  Section& duration(std::string_view key, std::chrono::milliseconds& target) {
    return take(key, target, &Node::as_duration);
  }
  /// Reads a file name. A relative one is resolved against `directory`.
  Section& file(std::string_view key, std::string& target, const std::string& directory) {
    text(key, target);
    if (node_[key].present() && !target.empty() && target.front() != '/' && !directory.empty()) {
      target = directory + "/" + target;
    }
    return *this;
  }
  /// Calls `read`, which returns a Result<>, for each item of a list.
  template <typename Read>
  Section& each(std::string_view key, const Read& read) {
    const Node list = node_[key];
    refuse(list.present() && !list.is_list(), key, "expected a list");
    for (const Node& item : list.items()) {
      if (!done_) {
        break;
      }
      done_ = read(item);
    }
    return *this;
  }
  /// Fails with `message` at this key when `wrong` is true.
  Section& refuse(bool wrong, std::string_view key, std::string_view message) {
    if (done_ && wrong) {
      done_ = fail(node_[key].present() ? node_[key].error(message) : node_.error(message));
    }
    return *this;
  }
  Section& also(Result<> result) {
    if (done_) {
      done_ = std::move(result);
    }
    return *this;
  }

  [[nodiscard]] const Node& node() const { return node_; }
  [[nodiscard]] bool ok() const { return done_.has_value(); }
  [[nodiscard]] Result<> done() const { return done_; }

 private:
  template <typename T>
  Section& take(std::string_view key, T& target, Result<T> (Node::*read)() const) {
    const Node value = node_[key];
    if (!done_ || !value.present()) {
      return *this;
    }
    auto result = (value.*read)();
    if (result) {
      target = std::move(*result);
    } else {
      done_ = fail(std::move(result).error());
    }
    return *this;
  }

  Node node_;
  Result<> done_;
};

}  // namespace ceems::config
