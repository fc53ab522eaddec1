#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "tool/db/tables.h"

namespace ceems::tool::db {

/// kInvalidArgument if the URL holds a password or is none. The message holds no part of it.
Result<> check_url(const std::string& url);

/// Tables::open() for a server.
Result<std::unique_ptr<Tables>> open_postgres(const Location& location, Use use);

}  // namespace ceems::tool::db
