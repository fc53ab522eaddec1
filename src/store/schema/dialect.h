#pragma once

#include <cstdint>

namespace ceems::store {

/// The database systems that hold the tables. Statements are written so that both accept them; the
/// dialect selects the words that differ.
enum class Dialect : std::uint8_t { kSqlite, kPostgres };

}  // namespace ceems::store
