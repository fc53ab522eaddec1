#include "api/request/row_filter.h"

#include <algorithm>
#include <utility>

#include <re2/re2.h>

namespace ceems::api {
namespace {

constexpr std::size_t kMaxPatterns = 8;
constexpr std::size_t kMaxBytes = 256;
constexpr std::int64_t kMaxMemory = std::int64_t{1} << 20;  // of a compiled pattern

bool is_text(const store::Field& field) {
  return field.kind == store::FieldKind::kText;
}

Error refused(std::string_view what) {
  return {ErrorCode::kInvalidArgument, fmt::format("query parameter 'match': {}", what)};
}

std::string names_of(std::span<const store::Field> fields) {
  std::string names;
  for (const store::Field& field : fields) {
    if (is_text(field)) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", field.name);
    }
  }
  return names;
}

}  // namespace

struct RowFilter::Condition {
  std::size_t field = 0;   ///< index into fields_
  std::size_t column = 0;  ///< of the query
  std::unique_ptr<RE2> pattern = {};

  [[nodiscard]] bool matches(std::string_view text) const {
    return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), *pattern);
  }
};

class RowFilter::Rows final : public store::Cursor {
 public:
  Rows(std::unique_ptr<store::Cursor> cursor, RowFilter filter)
      : cursor_(std::move(cursor)), filter_(std::move(filter)) {}

  Result<bool> next() override {
    while (true) {
      auto row = cursor_->next();
      if (!row || !*row || filter_.matches(*cursor_)) {
        return row;
      }
    }
  }
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return cursor_->text(column);
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return cursor_->integer(column);
  }

 private:
  std::unique_ptr<store::Cursor> cursor_;
  RowFilter filter_;
};

RowFilter::RowFilter() = default;
RowFilter::RowFilter(RowFilter&&) noexcept = default;
RowFilter& RowFilter::operator=(RowFilter&&) noexcept = default;
RowFilter::~RowFilter() = default;

Result<RowFilter> RowFilter::create(const Params& params, std::span<const store::Field> fields) {
  RowFilter filter;
  filter.fields_ = fields;
  filter.tags_ = params.tags;
  if (params.match.size() > kMaxPatterns) {
    return fail(refused(fmt::format("at most {} patterns", kMaxPatterns)));
  }
  RE2::Options options;
  options.set_dot_nl(true);
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  for (const std::string& text : params.match) {
    const auto colon = text.find(':');
    const auto field = colon == std::string::npos
                           ? std::nullopt
                           : store::find_field(fields, std::string_view(text).substr(0, colon));
    if (!field || !is_text(fields[*field])) {
      return fail(refused(
          fmt::format("expected FIELD:PATTERN with one of the fields {}", names_of(fields))));
    }
    const std::string pattern = text.substr(colon + 1);
    if (pattern.size() > kMaxBytes) {
      return fail(refused(fmt::format("a pattern has at most {} bytes", kMaxBytes)));
    }
    auto compiled = std::make_unique<RE2>(pattern, options);
    if (!compiled->ok()) {
      return fail(refused(fmt::format("invalid pattern of {}", fields[*field].name)));
    }
    filter.conditions_.push_back({.field = *field, .column = 0, .pattern = std::move(compiled)});
  }
  return filter;
}

bool RowFilter::empty() const {
  return conditions_.empty() && tags_.empty();
}

void RowFilter::read_with(RowFormat& format) {
  const auto column_of = [&format](std::size_t field) {
    return format.read_also(std::span(&field, 1)).front();
  };
  for (Condition& condition : conditions_) {
    condition.column = column_of(condition.field);
  }
  if (const auto tags = store::find_field(fields_, "tags"); tags && !tags_.empty()) {
    tags_column_ = column_of(*tags);
  }
}

std::unique_ptr<store::Cursor> RowFilter::rows_of(std::unique_ptr<store::Cursor> cursor) && {
  return std::make_unique<Rows>(std::move(cursor), std::move(*this));
}

bool RowFilter::matches(const store::Cursor& row) const {
  return std::ranges::all_of(conditions_,
                             [&row](const Condition& condition) {
                               return condition.matches(row.text(condition.column));
                             }) &&
         (tags_.empty() || store::has_tags(row.text(tags_column_), tags_));
}

bool RowFilter::matches(const std::function<std::string_view(std::string_view field)>& text) const {
  return std::ranges::all_of(conditions_, [&](const Condition& condition) {
    return condition.matches(text(fields_[condition.field].name));
  });
}

}  // namespace ceems::api
