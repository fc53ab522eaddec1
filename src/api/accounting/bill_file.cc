#include "api/accounting/bill_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/strings.h"
#include "base/time/rfc3339.h"

namespace ceems::api {
namespace {

constexpr std::array<std::string_view, 6> kColumns{"period_start", "period_end", "kwh",
                                                   "cost",         "currency",   "kgco2_market"};
constexpr std::size_t kNeeded = 3;

/// The cells of a line. A cell in quotes may hold commas, and quotes that are doubled. Nothing if a
/// quote is not closed.
std::optional<std::vector<std::string>> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char byte = line[i];
    if (quoted && byte == '"' && line.substr(i + 1, 1) == "\"") {
      cells.back() += byte;
      ++i;
    } else if (byte == '"') {
      quoted = !quoted;
    } else if (byte == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += byte;
    }
  }
  for (std::string& cell : cells) {
    cell = std::string(trim(cell));
  }
  return quoted ? std::nullopt : std::optional(std::move(cells));
}

std::optional<std::int64_t> moment_of(const std::string& text, const TimeZone& zone) {
  constexpr std::size_t kDate = 10;     // 2026-11-01
  constexpr std::size_t kMinutes = 16;  // 2026-11-01T06:00
  if (text.size() == kDate) {
    return zone.parse_local(text + "T00:00:00");
  }
  if (text.size() == kMinutes) {
    return zone.parse_local(text + ":00");
  }
  const auto local = zone.parse_local(text);
  return local ? local : parse_rfc3339_ms(text);
}

/// The text of a decimal number; nothing if it is none. Empty stays empty.
std::optional<std::string> amount_of(const std::string& text) {
  const auto number = parse_double(text);
  return text.empty() || (number && std::isfinite(*number)) ? std::optional(text) : std::nullopt;
}

class Reading {
 public:
  Reading(std::string_view file, const std::string& cluster_id, const TimeZone& zone)
      : file_(file), cluster_id_(cluster_id), zone_(zone) {}

  Result<std::vector<store::Bill>> read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF")) {  // a spreadsheet wrote it
      text.remove_prefix(3);
    }
    for (std::string_view line : split(text, '\n')) {
      ++line_;
      if (line.ends_with('\r')) {
        line.remove_suffix(1);
      }
      if (trim(line).empty()) {
        continue;
      }
      const auto cells = cells_of(line);
      if (!cells) {
        return wrong("a quote is not closed");
      }
      CEEMS_TRY(columns_.empty() ? read_head(*cells) : read_bill(*cells));
    }
    if (bills_.empty()) {
      return wrong("expected a line with the names of the columns, and one for each bill");
    }
    return std::move(bills_);
  }

 private:
  [[nodiscard]] std::unexpected<Error> wrong(std::string_view message) const {
    return fail(ErrorCode::kInvalidArgument, "{}:{}: {}", file_, line_, message);
  }

  Result<> read_head(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const auto found = std::ranges::find(kColumns, std::string_view(name));
      if (found == kColumns.end()) {
        return wrong(fmt::format("unknown column '{}', expected some of {}", printable(name, 40),
                                 fmt::join(kColumns, ", ")));
      }
      const auto column = static_cast<std::size_t>(found - kColumns.begin());
      if (std::ranges::find(columns_, column) != columns_.end()) {
        return wrong(fmt::format("the column {} is there twice", name));
      }
      columns_.push_back(column);
    }
    for (std::size_t column = 0; column < kNeeded; ++column) {
      if (std::ranges::find(columns_, column) == columns_.end()) {
        return wrong(fmt::format("the column {} is missing", kColumns.at(column)));
      }
    }
    return {};
  }

  Result<> read_bill(const std::vector<std::string>& cells) {
    constexpr double kMaxKwh = 9e9;  // fits into the database
    if (cells.size() != columns_.size()) {
      return wrong(fmt::format("expected {} cells, got {}", columns_.size(), cells.size()));
    }
    std::array<std::string, kColumns.size()> values;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      values.at(columns_[i]) = cells[i];
    }
    const auto start = moment_of(values[0], zone_);
    const auto end = moment_of(values[1], zone_);
    if (!start || !end) {
      return wrong(fmt::format("{}: expected a time such as 2026-11-01 or 2026-11-01T06:00",
                               kColumns.at(start ? 1 : 0)));
    }
    if (*start >= *end) {
      return wrong("period_end: expected a time after period_start");
    }
    const auto kwh = parse_double(values[2]);
    if (!kwh || !std::isfinite(*kwh) || *kwh < 0 || *kwh > kMaxKwh) {
      return wrong("kwh: expected a number from 0 to 9e9, without unit");
    }
    for (const std::size_t column : {std::size_t{3}, std::size_t{5}}) {
      if (!amount_of(values.at(column))) {
        return wrong(fmt::format("{}: expected a number", kColumns.at(column)));
      }
    }
    constexpr std::size_t kMaxCurrency = 16;
    if (values[4].size() > kMaxCurrency || printable(values[4]) != values[4]) {
      return wrong("currency: expected a short text such as EUR");
    }
    bills_.push_back({.cluster_id = cluster_id_,
                      .start_ms = *start,
                      .end_ms = *end,
                      .energy = static_cast<std::int64_t>(std::llround(*kwh * 1e9)),
                      .cost = values[3],
                      .currency = values[4],
                      .kgco2 = values[5]});
    return {};
  }

  std::string_view file_;
  const std::string& cluster_id_;
  TimeZone zone_;
  int line_ = 0;
  std::vector<std::size_t> columns_;
  std::vector<store::Bill> bills_;
};

}  // namespace

Result<std::vector<store::Bill>> parse_bills(std::string_view text,
                                             std::string_view file,
                                             const std::string& cluster_id,
                                             const TimeZone& zone) {
  return Reading(file, cluster_id, zone).read(text);
}

}  // namespace ceems::api
