#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

constexpr std::string_view kSlurmJob = "job_";

class SlurmMatcher final : public UnitMatcher {
 public:
  explicit SlurmMatcher(host::CgroupMode mode) : mode_(mode) {}

  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (parent.inside) {
      if (name.starts_with(kSlurmJob) && is_number(name.substr(kSlurmJob.size()))) {
        return {.kind = Kind::kUnit,
                .inside = true,
                .id = std::string(name.substr(kSlurmJob.size())),
                .host = parent.host,
                .forgeable = parent.forgeable};
      }
      if (is_sluid(name)) {
        return {.kind = Kind::kUnit,
                .inside = true,
                .id = std::string(name),
                .host = parent.host,
                .sluid = true,
                .forgeable = parent.forgeable};
      }
      return {.kind = Kind::kDescend,
              .inside = true,
              .id = {},
              .host = parent.host,
              .forgeable = parent.forgeable};
    }
    const bool unified = mode_ == host::CgroupMode::kUnified;
    const bool top = path.find('/', 1) == std::string::npos;
    const bool slice = name.ends_with(".slice") || is_k8s_root(name);
    if (unified && ((top && !slice) || path == "/user.slice")) {
      return {.kind = Kind::kSkip};
    }
    if (const auto node = unified ? host::slurm_scope_node(name) : host::slurm_v1_node(name)) {
      std::string host = host::unescape_path(*node).value_or(std::string(*node));
      if (host.empty()) {
        host = parent.host;
      }
      return {.kind = Kind::kDescend,
              .inside = true,
              .id = {},
              .host = std::move(host),
              .forgeable = parent.forgeable};
    }
    // In v2 a slurmd in a container has its scope deep below a slice, or below its pod. Roots of v1
    // are at the top, or below a pod, whose processes take its directory for the top.
    if ((!unified && top && !is_k8s_root(name)) || libvirt_instance(name)) {
      return {.kind = Kind::kSkip};
    }
    std::string pod = k8s_pod_uid(name, path.starts_with("/kubepods"));
    if (pod.empty()) {
      pod = parent.host;
    }
    return {
        .kind = Kind::kSearch,
        .inside = false,
        .id = {},
        .host = std::move(pod),
        .forgeable = parent.forgeable || (top && path != "/system.slice" && !is_k8s_root(name))};
  }

 private:
  host::CgroupMode mode_;
};

constexpr std::size_t kMaxDigits = 20;

class LsfMatcher final : public UnitMatcher {
 public:
  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (!parent.inside) {
      if (is_lsf_root(name)) {
        return {.kind = Kind::kDescend, .inside = true};
      }
      return {.kind = path.rfind('/') == 0 ? Kind::kSearch : Kind::kSkip};
    }
    std::string id = lsf_job_id(name);
    if (id.empty()) {
      return {.kind = Kind::kDescend, .inside = true};
    }
    const bool element = id.ends_with(']');
    return {.kind = Kind::kUnit, .inside = true, .id = std::move(id), .element = element};
  }
};

/// A hostname, which is what servers are called by.
bool is_server(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
}

class OpenpbsMatcher final : public UnitMatcher {
 public:
  [[nodiscard]] std::string start() const override { return ""; }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (parent.inside) {
      // Beside jobs, the hook makes no directories below these.
      std::string id = openpbs_job_id(name);
      if (id.empty()) {
        return {.kind = Kind::kSkip, .inside = true};
      }
      const bool element = id.find('[') != std::string::npos;
      return {.kind = Kind::kUnit, .inside = true, .id = std::move(id), .element = element};
    }
    const std::string_view above = std::string_view(path).substr(0, path.rfind('/'));
    if ((name == "jobid" || name == "jobs") &&
        is_openpbs_root(above.substr(above.rfind('/') + 1))) {
      return {.kind = Kind::kDescend, .inside = true};
    }
    if (is_openpbs_root(name)) {
      return {.kind = Kind::kDescend};
    }
    return {.kind = path.rfind('/') == 0 ? Kind::kSearch : Kind::kSkip};
  }
};

}  // namespace

bool is_sluid(std::string_view name) {
  constexpr std::size_t kLength = 14;
  constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  return name.size() == kLength && name.front() == 's' &&
         name.find_first_not_of(kDigits, 1) == std::string_view::npos;
}

std::unique_ptr<UnitMatcher> slurm_matcher(host::CgroupMode mode) {
  return std::make_unique<SlurmMatcher>(mode);
}

bool is_lsf_root(std::string_view name) {
  return name == "lsf" || name == "lsf.slice" || name == "lsf.service" || name == "lsfd.service";
}

std::string lsf_job_id(std::string_view name) {
  constexpr std::string_view kJob = "job.";
  if (!name.starts_with(kJob)) {
    return {};
  }
  // systemd writes brackets as \x5b and \x5d.
  const auto plain = host::unescape_path(name.substr(kJob.size()));
  if (!plain) {
    return {};
  }
  std::string_view rest = *plain;
  std::string id(take_until(rest, '.'));
  const std::string_view pid = take_until(rest, '.');
  if (!is_number(pid, kMaxDigits) || !is_number(rest, kMaxDigits)) {
    return {};
  }
  std::string_view index = id;
  const std::string_view job = take_until(index, '[');
  if (job.size() == id.size()) {
    return is_number(job, kMaxDigits) ? id : std::string();
  }
  if (!is_number(job, kMaxDigits) || !index.ends_with(']') ||
      !is_number(index.substr(0, index.size() - 1), kMaxDigits)) {
    return {};
  }
  return id;
}

std::unique_ptr<UnitMatcher> lsf_matcher() {
  return std::make_unique<LsfMatcher>();
}

bool is_openpbs_root(std::string_view name) {
  return name == "pbs_jobs.service" || name == "pbs.service";
}

std::string openpbs_job_id(std::string_view name) {
  auto plain = host::unescape_path(name);
  if (!plain) {
    return {};
  }
  std::string_view rest = *plain;
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) {
    return {};
  }
  rest.remove_prefix(digits);
  if (rest.starts_with('[')) {
    const std::size_t close = rest.find(']');
    if (close == std::string_view::npos || close == 1 ||
        !std::all_of(rest.begin() + 1, rest.begin() + static_cast<std::ptrdiff_t>(close),
                     is_digit)) {
      return {};
    }
    rest.remove_prefix(close + 1);
  }
  if (!rest.empty() && (rest.front() != '.' || !is_server(rest.substr(1)))) {
    return {};
  }
  return *std::move(plain);
}

std::unique_ptr<UnitMatcher> openpbs_matcher() {
  return std::make_unique<OpenpbsMatcher>();
}

}  // namespace ceems::exporter
