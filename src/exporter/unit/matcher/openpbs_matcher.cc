#include <algorithm>

#include "base/strings.h"
#include "exporter/unit/matcher/unit_matcher.h"
#include "host/cgroup/cgroup.h"

namespace ceems::exporter {
namespace {

using Kind = DirectoryMatch::Kind;

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
