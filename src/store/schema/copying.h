#pragma once

#include <string_view>

namespace ceems::store {

// `ceems_tool db copy` keeps its progress in a table of the destination, and removes the table when
// both databases are equal. Until then nothing else opens the destination.

inline constexpr std::string_view kCopyTable = "ceems_copy";
/// The message, with the name of the database.
inline constexpr std::string_view kUnfinishedCopy =
    "database {}: holds an unfinished copy; run the same 'ceems_tool db copy' again to finish it";

}  // namespace ceems::store
