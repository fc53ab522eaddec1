#pragma once

namespace ceems::api {

/// `ceems_api_server import-bill FILE`: adds bills of the utility to the database, beside a running
/// server; argv[1] is the word. Returns the exit status.
int import_bill(int argc, const char* const* argv);

}  // namespace ceems::api
