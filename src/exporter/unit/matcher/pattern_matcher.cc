#include <algorithm>
#include <array>
#include <cstdint>

#include <re2/re2.h>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

// The service manager of a user is not a unit, but its services and applications are.
constexpr std::string_view kUserManager = R"(/user@[0-9]+\.service$)";

// What people usually run, by the cgroup names of common tools. The first pattern that matches
// decides. An `owner` group makes the names of user services unique, since every user has a
// dbus.service.
constexpr std::array kDefaults = {
    // 64 hexadecimal digits in the name of a systemd scope or, with the cgroupfs driver, alone.
    std::string_view(R"(/(?P<id>(?:docker|libpod|crio|nerdctl|cri-containerd|buildkit)-)"
                     R"([0-9a-f]{12})[0-9a-f]{52}(?:\.scope)?$)"),
    std::string_view(R"(/(?P<id>[0-9a-f]{12})[0-9a-f]{52}$)"),
    std::string_view(R"(^/(?P<id>lxc\.(?:payload|monitor)\.[^/]+)$)"),
    std::string_view(R"(^/lxc(?:\.payload|\.monitor)?/(?P<id>[^/]+)$)"),
    std::string_view(R"(^/(?:default|moby)/(?P<id>[^/]+)$)"),  // containerd's namespaces
    std::string_view(R"(^/openrc[./](?P<id>[^/]+)$)"),
    std::string_view(
        R"(/user@(?P<owner>[0-9]+)\.service/(?:.*/)?(?P<id>[^/]+\.(?:service|scope))$)"),
    std::string_view(R"(/(?P<id>[^/]+\.(?:service|scope))$)"),
};

class Pattern {
 public:
  explicit Pattern(std::string_view text) : regex_(std::string(text), options()) {
    for (const auto& [name, index] : regex_.NamedCapturingGroups()) {
      if (name == "id") {
        id_ = index;
      } else if (name == "host") {
        host_ = index;
      } else if (name == "owner") {
        owner_ = index;
      }
    }
  }

  [[nodiscard]] const RE2& regex() const { return regex_; }
  [[nodiscard]] bool has_id() const { return id_ > 0; }

  /// If the path matches and the id is not empty, sets id and host of `match` and returns true.
  [[nodiscard]] bool apply(const std::string& path, DirectoryMatch& match) const {
    std::array<re2::StringPiece, kMaxGroups> groups;
    const int count = std::min(regex_.NumberOfCapturingGroups() + 1, kMaxGroups);
    if (!regex_.Match(path, 0, path.size(), RE2::UNANCHORED, groups.data(), count)) {
      return false;
    }
    const auto text = [&groups](int group) -> std::string {
      return group > 0 ? groups.at(static_cast<std::size_t>(group)).as_string() : std::string();
    };
    match.id = trim(text(id_));
    match.host = trim(text(host_));
    if (owner_ > 0 && !match.id.empty()) {
      match.id += "-u" + text(owner_);
    }
    return !match.id.empty();
  }

  static constexpr int kMaxGroups = 16;

 private:
  static RE2::Options options() {
    RE2::Options options(RE2::Latin1);  // names are bytes, not always UTF-8
    options.set_log_errors(false);
    return options;
  }

  RE2 regex_;
  int id_ = 0;
  int host_ = 0;
  int owner_ = 0;
};

class PatternMatcher final : public UnitMatcher {
 public:
  PatternMatcher(std::vector<std::unique_ptr<Pattern>> patterns,
                 host::CgroupMode mode,
                 bool defaults,
                 OtherManagers others)
      : patterns_(std::move(patterns)),
        user_manager_(kUserManager),
        mode_(mode),
        defaults_(defaults),
        others_(others) {}

  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    static_cast<void>(parent);
    DirectoryMatch result{.kind = Kind::kDescend};
    if (is_of_other(path, name)) {
      result.kind = Kind::kSkip;
      return result;
    }
    if (defaults_ && RE2::PartialMatch(path, user_manager_.regex())) {
      return result;
    }
    for (const auto& pattern : patterns_) {
      if (pattern->apply(path, result)) {
        result.kind = Kind::kUnit;
        return result;
      }
    }
    return {.kind = Kind::kDescend};
  }

 private:
  [[nodiscard]] bool is_of_other(const std::string& path, std::string_view name) const {
    if (others_.slurm && (mode_ == host::CgroupMode::kUnified
                              ? host::slurm_scope_node(name).has_value()
                              : host::slurm_v1_node(name).has_value() && path.rfind('/') == 0)) {
      return true;
    }
    if ((others_.k8s && (is_k8s_root(name) || !k8s_pod_uid(name, false).empty()) &&
         !path.starts_with("/user.slice/")) ||
        (others_.lsf && is_lsf_root(name)) || (others_.openpbs && is_openpbs_root(name))) {
      return true;
    }
    return others_.libvirt && is_below_machines(path) && libvirt_instance(name).has_value();
  }

  static bool is_below_machines(std::string_view path) {
    if (path.starts_with("/user.slice/")) {
      return false;
    }
    while (!path.empty()) {
      if (is_libvirt_root(take_until(path, '/'))) {
        return true;
      }
    }
    return false;
  }

  std::vector<std::unique_ptr<Pattern>> patterns_;
  Pattern user_manager_;
  host::CgroupMode mode_;
  bool defaults_;
  OtherManagers others_;
};

bool is_harmless(char c) {
  return is_word(c, "._:@+-");
}

// FNV-1a, 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/), which gives the same value at every
// start.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

}  // namespace

std::string UnitMatcher::uuid_of(const DirectoryMatch& match, const std::string& path) {
  std::string uuid;
  bool changed = match.id.size() > kMaxUuid;
  for (const char c : std::string_view(match.id).substr(0, kMaxUuid)) {
    const bool kept = is_harmless(c) || (match.element && (c == '[' || c == ']'));
    changed = changed || !kept;
    uuid += kept ? c : '_';
  }
  if (changed) {
    uuid.resize(std::min<std::size_t>(uuid.size(), kMaxUuid / 2));
    uuid += fmt::format("-{:012x}", hash_of(path) & 0xFFFFFFFFFFFFU);
  }
  return uuid;
}

Result<std::unique_ptr<UnitMatcher>> pattern_matcher(const std::vector<std::string>& patterns,
                                                     host::CgroupMode mode,
                                                     OtherManagers others) {
  std::vector<std::unique_ptr<Pattern>> compiled;
  for (const std::string& text : patterns) {
    auto pattern = std::make_unique<Pattern>(text);
    if (!pattern->regex().ok()) {
      return fail(ErrorCode::kInvalidArgument, "pattern '{}': {}", printable(text),
                  pattern->regex().error());
    }
    if (!pattern->has_id()) {
      return fail(ErrorCode::kInvalidArgument,
                  "pattern '{}': expected a group (?P<id>...) for the unit's name",
                  printable(text));
    }
    if (pattern->regex().NumberOfCapturingGroups() >= Pattern::kMaxGroups) {
      return fail(ErrorCode::kInvalidArgument, "pattern '{}': expected fewer than {} groups",
                  printable(text), Pattern::kMaxGroups);
    }
    compiled.push_back(std::move(pattern));
  }
  if (patterns.empty()) {
    for (const std::string_view text : kDefaults) {
      compiled.push_back(std::make_unique<Pattern>(text));
    }
  }
  return std::make_unique<PatternMatcher>(std::move(compiled), mode, patterns.empty(), others);
}

}  // namespace ceems::exporter
