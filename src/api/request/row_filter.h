#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/envelope.h"
#include "api/request/params.h"
#include "base/result.h"
#include "store/reader.h"

namespace ceems::api {

/// The conditions of `match` and `tags.*`, which rows must fulfil as the caller may see them: a
/// text that is withheld is empty here. Not thread-safe.
class RowFilter {
 public:
  /// `fields` are the fields of the rows. kInvalidArgument with a text for clients: a field that is
  /// not a text of the row, a malformed or too large pattern, too many of them.
  static Result<RowFilter> create(const Params& params, std::span<const store::Field> fields);
  RowFilter(RowFilter&&) noexcept;
  RowFilter& operator=(RowFilter&&) noexcept;
  RowFilter(const RowFilter&) = delete;
  RowFilter& operator=(const RowFilter&) = delete;
  ~RowFilter();

  [[nodiscard]] bool empty() const;
  /// Makes the query read what the conditions need. Call it before the query.
  void read_with(RowFormat& format);
  /// The rows of `cursor` that fulfil the conditions. The filter moves into the result.
  std::unique_ptr<store::Cursor> rows_of(std::unique_ptr<store::Cursor> cursor) &&;
  /// Whether a row whose fields are given by name fulfils the patterns.
  [[nodiscard]] bool matches(
      const std::function<std::string_view(std::string_view field)>& text) const;

 private:
  class Rows;
  struct Condition;

  RowFilter();
  [[nodiscard]] bool matches(const store::Cursor& row) const;

  std::span<const store::Field> fields_;
  std::vector<Condition> conditions_;
  std::vector<store::TagFilter> tags_;
  std::size_t tags_column_ = 0;
};

}  // namespace ceems::api
