// Reviews of the admission webhooks: objects that users of a cluster have written.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "admission/review.h"
#include "admission/rules.h"
#include "admission/workloads.h"
#include "base/check.h"
#include "base/json_reader.h"

namespace admission = ceems::admission;

namespace {

void check_patch(const admission::Verdict& verdict) {
  for (const auto& operation : verdict.patch) {
    CEEMS_CHECK(operation.path.starts_with('/'));
    CEEMS_CHECK(operation.path.ends_with(operation.wrapped ? "/metadata" : "/annotations"));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const std::vector<admission::Workload> workloads = [] {
    auto all = admission::builtin_workloads();
    all.push_back(*admission::parse_workload("ray.io/RayCluster:/spec/*/*/template"));
    return all;
  }();
  static_cast<void>(admission::parse_workload(text));
  const auto review = admission::parse_review(text, workloads);
  if (!review || !review->object) {
    return 0;
  }
  for (const bool strict : {false, true}) {
    const admission::Rules rules{.distrust = strict, .enforce = strict};
    const auto verdict = admission::mutate(rules, *review, *review->object);
    CEEMS_CHECK(verdict.allowed);
    check_patch(verdict);
    const auto validation = admission::validate(rules, *review, *review->object);
    CEEMS_CHECK(validation.verdict.patch.empty());
    CEEMS_CHECK(validation.would_patch == !verdict.patch.empty());
    std::string copy;
    CEEMS_CHECK(ceems::append_json_object(
        copy, admission::answer_json(review->api_version, review->uid, verdict)));
  }
  return 0;
}
