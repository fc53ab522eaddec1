#pragma once

#include "audit/log.h"
#include "gate/gate.h"
#include "net/http.h"

namespace ceems::lb {

// The audit of the load balancer (docs/audit.md). A null log does nothing. Users who read their own
// units and those of their projects leave no line.

/// A request that the gate refused.
void audit_denial(audit::Log* log, const net::Request& request, const gate::Refusal& refusal);

/// A request that passed because its user is an admin, with the queries that it contains. Nothing
/// for other users, nor without access control.
void audit_read(audit::Log* log, const net::Request& request, const gate::Decision& decision);

}  // namespace ceems::lb
