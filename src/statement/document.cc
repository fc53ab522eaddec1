#include "statement/document.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/json.h"
#include "crypto/digest.h"

namespace ceems::statement {
namespace {

constexpr std::array<std::string_view, 5> kFormats{"md", "csv", "json", "xlsx", "html"};

void round(std::optional<double>& value) {
  if (value) {
    value = std::isfinite(*value) ? std::optional(rounded(*value)) : std::nullopt;
  }
}

}  // namespace

std::string_view name_of(How how) {
  constexpr std::array<std::string_view, 5> kNames{"measured", "derived", "modelled", "declared",
                                                   "missing"};
  return kNames.at(static_cast<std::size_t>(how));
}

double rounded(double value) {
  if (!std::isfinite(value) || value == 0) {
    return 0;
  }
  return std::strtod(fmt::format("{:.11e}", value).c_str(), nullptr);
}

std::string number_text(double value) {
  std::string text;
  JsonWriter(text).value(value);
  return text;
}

void Document::add(Line line) {
  round(line.value);
  round(line.factor.value);
  round(line.coverage);
  if (!line.value) {
    line.how = How::kMissing;
    line.formula.clear();
  }
  lines.push_back(std::move(line));
}

void Document::add_table(report::Table table, std::string detail) {
  for (auto& row : table.rows) {
    for (report::Cell& cell : row) {
      double* number = std::get_if<double>(&cell);
      if (number != nullptr && std::isfinite(*number)) {
        *number = rounded(*number);
      } else if (number != nullptr) {
        cell.emplace<std::monostate>();
      }
    }
  }
  sources.push_back({.what = "table " + table.name,
                     .detail = std::move(detail),
                     .sha256 = crypto::hex(crypto::sha256(report::to_csv(table)))});
  appendix.push_back(std::move(table));
}

std::optional<Format> find_format(std::string_view name) {
  for (std::size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats.at(i) == name) {
      return static_cast<Format>(i);
    }
  }
  return std::nullopt;
}

Result<std::string> render(const Document& document, Format format) {
  switch (format) {
    case Format::kMarkdown:
      return to_markdown(document);
    case Format::kCsv:
      return to_csv(document);
    case Format::kJson:
      return to_json(document);
    case Format::kXlsx:
      return to_xlsx(document);
    case Format::kHtml:
      break;
  }
  return to_html(document);
}

}  // namespace ceems::statement
