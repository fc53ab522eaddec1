#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

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

}  // namespace

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

}  // namespace ceems::exporter
