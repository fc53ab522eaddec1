#pragma once

#include <string>

#include "store/schema/dialect.h"

namespace ceems::store {

/// The tables ceems_outbox and ceems_contacts (store/outbox.h).
std::string create_mail_tables(Dialect dialect);

}  // namespace ceems::store
