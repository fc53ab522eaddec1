#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/request_metrics.h"
#include "api/answer/stream_slots.h"
#include "base/error.h"
#include "base/json.h"
#include "base/time/time_zone.h"
#include "net/http.h"
#include "store/reader.h"

namespace ceems::api {

/// The field errorType of the envelope.
enum class ApiErrorType : std::uint8_t {
  kBadData,
  kUnauthorized,
  kForbidden,
  kInternal,
  kTimeout,
  kNotFound,
  kConflict
};

struct ApiErrorInfo {
  ApiErrorType type;
  int status;
  std::string_view word;  ///< the text in answers
  std::string_view when;
};
/// All error types, in the order of the enum.
std::span<const ApiErrorInfo> all_errors();

/// Answers {"status":"error","errorType":...,"error":...,"data":null}. Grafana's parser of the
/// Prometheus API stops at a "data" that is null, so it comes last. Clients see `message`, so it
/// must not contain error texts of the database or names of other users. `login` is a JSON object
/// with the login methods; if not empty, it becomes the member "login".
void answer_error(net::Response& response,
                  ApiErrorType type,
                  std::string_view message,
                  std::string_view login = {});

/// Answers a database error with a generic text. QueryTimer has already logged the error.
void answer_failure(net::Response& response, const Error& error);

/// Answers an error of a TSDB. The caller has logged it.
void answer_tsdb_failure(net::Response& response);

/// Answers 200 with an empty list and the member "login", if that is not empty.
void answer_nobody(net::Response& response, std::string_view login);

/// Answers {"status":"success","data":DATA}; `data` is JSON. `next` and `previous` are cursors of
/// other pages; if not empty, they become members. So does `missing`, which is JSON.
void answer_data(net::Response& response,
                 std::string_view data,
                 std::string_view next = {},
                 std::string_view previous = {},
                 std::string_view missing = {});

/// Writes rows as JSON objects with the fields in their order. Not thread-safe.
class RowFormat {
 public:
  /// `selected` are indexes into `all`. Fields that are not selected are written as empty values,
  /// unless they are omitted when empty.
  RowFormat(std::span<const store::Field> all, std::vector<std::size_t> selected);

  /// Converts the times of units to another zone. Adds the columns that this requires.
  void convert_times(const TimeZone& zone);

  /// Reads these fields without writing them. Returns their columns.
  std::vector<std::size_t> read_also(std::span<const std::size_t> fields);

  /// The columns that the query must read, in this order.
  [[nodiscard]] const std::vector<std::size_t>& columns() const { return columns_; }

  void append(JsonWriter& json, const store::Cursor& row) const;

 private:
  struct Shown {
    const store::Field* field = nullptr;
    std::string key = {};      ///< the name as a JSON string
    int column = -1;           ///< -1: not selected
    int epoch_ms_column = -1;  ///< column with the epoch time, if the time is converted
  };
  void append_field(JsonWriter& json, const Shown& shown, const store::Cursor& row) const;

  std::span<const store::Field> all_;
  std::vector<std::size_t> columns_;
  std::vector<Shown> shown_;
  TimeZone zone_;
};

/// The rows of a query and how to write them.
struct Listing {
  QueryTimer timer;
  std::unique_ptr<store::Cursor> rows;
  RowFormat format;
};

/// Answers with all rows. Long answers are streamed, so memory stays bounded, and the database
/// connection is returned as soon as the last row is read. While `user` or all users together have
/// too many streams, a long answer is refused with 503. If reading fails midway, the connection to
/// the client is closed, so that no client mistakes a part for the whole.
void answer_rows(net::Response& response,
                 Listing listing,
                 StreamSlots& slots,
                 const std::string& user);

}  // namespace ceems::api
