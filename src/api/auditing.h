#pragma once

#include "api/endpoints/endpoint.h"
#include "audit/log.h"
#include "net/http.h"

namespace ceems::api {

// The audit of the API server (docs/audit.md). A null log does nothing.

/// An answered request for an endpoint: a line for each denial, and for each answer with data of
/// other people (Call::foreign).
void audit_call(audit::Log* log, const Endpoint& endpoint, const Call& call);

/// An answered request for a login page: a line for each denial.
void audit_login(audit::Log* log, const net::Request& request, const net::Response& response);

}  // namespace ceems::api
