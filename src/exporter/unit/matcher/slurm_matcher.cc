#include <algorithm>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

constexpr std::string_view kJob = "job_";

class SlurmMatcher final : public UnitMatcher {
 public:
  explicit SlurmMatcher(host::CgroupMode mode) : mode_(mode) {}

  [[nodiscard]] std::string start() const override {
    return mode_ == host::CgroupMode::kUnified ? "/system.slice" : "";
  }

  [[nodiscard]] DirectoryMatch match(const std::string& path,
                                     std::string_view name,
                                     const DirectoryMatch& parent) const override {
    if (parent.inside) {
      if (name.starts_with(kJob) && is_number(name.substr(kJob.size()))) {
        return {.kind = Kind::kUnit,
                .inside = true,
                .id = std::string(name.substr(kJob.size())),
                .host = parent.host};
      }
      if (is_sluid(name)) {
        return {.kind = Kind::kUnit,
                .inside = true,
                .id = std::string(name),
                .host = parent.host,
                .sluid = true};
      }
      return {.kind = Kind::kDescend, .inside = true, .id = {}, .host = parent.host};
    }
    const bool unified = mode_ == host::CgroupMode::kUnified;
    if (const auto node = unified ? host::slurm_scope_node(name) : host::slurm_v1_node(name)) {
      return {.kind = Kind::kDescend,
              .inside = true,
              .id = {},
              .host = host::unescape_path(*node).value_or(std::string(*node))};
    }
    // In v2 a slurmd in a container has its scope deep below system.slice. Roots of v1 are at the
    // top.
    static_cast<void>(path);
    return {.kind = unified ? Kind::kSearch : Kind::kSkip};
  }

 private:
  host::CgroupMode mode_;
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

}  // namespace ceems::exporter
