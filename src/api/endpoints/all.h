#pragma once

#include "api/endpoints/endpoint.h"

namespace ceems::api {

// The list of endpoints. CMakeLists.txt reads this file: for a line that declares NAME_endpoints(),
// the build compiles endpoints/NAME.cc, and endpoints/NAME_test.cc if there is one, and calls the
// function in endpoints_as_listed(). Each describes one endpoint, or several that answer alike. The
// order of the lines is that of the schemas in the OpenAPI document, and has no other meaning.
Endpoints units_endpoints();
Endpoints usage_endpoints();
Endpoints users_endpoints();
Endpoints projects_endpoints();
Endpoints clusters_endpoints();
Endpoints stats_endpoints();
Endpoints demo_endpoints();
Endpoints units_profile_endpoints();
Endpoints units_series_endpoints();
Endpoints units_regions_endpoints();
Endpoints units_verify_endpoints();
Endpoints whoami_endpoints();
Endpoints tokens_endpoints();
Endpoints site_endpoints();
Endpoints units_report_endpoints();
Endpoints units_list_endpoints();
Endpoints units_feedback_endpoints();
Endpoints units_findings_endpoints();
Endpoints units_kinds_endpoints();
Endpoints usage_digest_endpoints();
Endpoints units_summary_endpoints();
Endpoints nodes_endpoints();
Endpoints nodes_map_endpoints();
Endpoints node_history_endpoints();
Endpoints gpus_endpoints();
Endpoints grid_endpoints();
Endpoints grid_forecast_endpoints();
Endpoints insight_helped_endpoints();
Endpoints insight_feedback_endpoints();
Endpoints insight_idle_endpoints();
Endpoints insight_nodes_endpoints();
Endpoints insight_neighbours_endpoints();
Endpoints insight_stragglers_endpoints();
Endpoints insight_budgets_endpoints();
Endpoints insight_bill_endpoints();
Endpoints insight_report_endpoints();
Endpoints usage_series_endpoints();
Endpoints search_endpoints();
Endpoints units_check_endpoints();

/// The endpoints of the list, in its order.
Endpoints endpoints_as_listed();

}  // namespace ceems::api
