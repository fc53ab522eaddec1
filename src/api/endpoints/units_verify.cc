// Whether a user may see the metrics of units.
#include "access/visible.h"
#include "api/endpoints/all.h"
#include "model/protocol.h"

namespace ceems::api {
namespace {

void verify_units(const Services& services, Call& call) {
  if (call.params.uuids.empty()) {
    answer_error(*call.response, ApiErrorType::kBadData, "uuids missing in the request");
    return;
  }
  QueryTimer timer(*services.metrics, Query::kVerify);
  const auto decision = timer.run([&] {
    return Result<access::Decision>(access::see_metrics(*services.reader, call.identity,
                                                        call.params.clusters, call.params.uuids));
  });
  if (*decision != access::Decision::kAllow) {
    answer_error(*call.response, ApiErrorType::kForbidden, "user do not have permissions on uuids");
    return;
  }
  // The load balancer sends one id at a time to servers without this header (src/gate).
  call.response->set_header(std::string(model::kVerifiedHeader), std::string(model::kVerifiedEach));
  answer_data(*call.response, "null");
}

}  // namespace

Endpoints units_verify_endpoints() {
  return {{.path = "units/verify",
           .caller = Caller::kUser,
           .summary = "Whether the caller may see the metrics of all these units: 200 or 403.",
           .handler = verify_units,
           .params = {Param::kClusterId, Param::kUuid},
           .required = {Param::kUuid},
           .raw_ids = true,
           .header = model::kVerifiedHeader,
           .refusals = {ApiErrorType::kForbidden}}};
}

}  // namespace ceems::api
