#pragma once

#include <cstdint>

namespace ceems::store {

/// The databases that hold the tables. Statements are written so that both take them; this decides
/// the words that differ.
enum class Dialect : std::uint8_t { kSqlite, kPostgres };

}  // namespace ceems::store
