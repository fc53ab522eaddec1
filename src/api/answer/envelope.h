#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/figures.h"
#include "base/error.h"
#include "base/json.h"
#include "base/time/time_zone.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// errorType of the envelope.
enum class ApiErrorType : std::uint8_t { kBadData, kUnauthorized, kForbidden, kInternal, kTimeout };

struct ApiErrorInfo {
  ApiErrorType type;
  int status;
  std::string_view word;  ///< as in answers
  std::string_view when;
};
/// All of them, in the order of the type.
std::span<const ApiErrorInfo> all_errors();

/// {"status":"error","data":null,"errorType":...,"error":...}. `message` is for clients: it never
/// holds texts of the data base or names of other users. `login` is JSON, the ways to log in; it
/// becomes the member "login" where it is not empty.
void answer_error(net::Response& response,
                  ApiErrorType type,
                  std::string_view message,
                  std::string_view login = {});

/// Answers to an error of the data base with a generic text; QueryMeter has logged it.
void answer_failure(net::Response& response, const Error& error);

/// {"status":"success","data":DATA}; `data` is JSON. `next`, the cursor of the next page, becomes
/// the member "next" where it is not empty.
void answer_data(net::Response& response, std::string_view data, std::string_view next = {});

/// Rows of one kind as JSON objects, fields in their order. Not thread-safe.
class RowFormat {
 public:
  /// `selected` are indexes into `all`. Fields that were not asked for are shown as empty where
  /// their kind is always shown.
  RowFormat(std::span<const store::Field> all, std::vector<std::size_t> selected);

  /// Times of units in another zone; adds the columns that takes.
  void convert_times(const TimeZone& zone);

  /// Reads these fields too, without showing them; gives their columns.
  std::vector<std::size_t> read_also(std::span<const std::size_t> fields);

  /// What the query has to read, in this order.
  [[nodiscard]] const std::vector<std::size_t>& columns() const { return columns_; }

  void append(JsonWriter& json, const store::Cursor& row) const;

 private:
  struct Shown {
    const store::Field* field = nullptr;
    std::string key = {};      ///< its name as JSON
    int column = -1;           ///< -1: not asked for
    int epoch_ms_column = -1;  ///< of the time, when it is to be converted
  };
  void append_field(JsonWriter& json, const Shown& shown, const store::Cursor& row) const;

  std::span<const store::Field> all_;
  std::vector<std::size_t> columns_;
  std::vector<Shown> shown_;
  TimeZone zone_;
};

/// Rows on their way from a query into an answer.
struct Listing {
  QueryMeter meter;
  std::unique_ptr<store::Cursor> rows;
  RowFormat format;
};

/// Answers with all rows. Long answers are streamed: memory stays flat, and the connection of the
/// cursor goes back as soon as the last row is read. When reading fails on the way the transfer is
/// broken off, so that no client takes a part for the whole.
void answer_rows(net::Response& response, Listing listing);

}  // namespace ceems::api
