// Tables as CSV and as workbooks.
#include "report/table.h"

#include <sys/mman.h>
#include <unistd.h>
#include <xlsxwriter.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text/cells.h"
#include "base/utf8.h"

namespace ceems::report {
namespace {

constexpr double kTextWidth = 24;  // in characters
constexpr double kNumberWidth = 16;
constexpr double kNoteWidth = 90;
constexpr std::size_t kMaxText = 8000;  // at most 32,767 characters are allowed

void append_csv_cell(std::string& text, const Cell& cell) {
  if (const auto* name = std::get_if<std::string>(&cell)) {
    text += csv_cell(*name);
  } else if (const auto* number = std::get_if<double>(&cell)) {
    text += fmt::format("{}", *number);
  } else if (const auto* date = std::get_if<Date>(&cell)) {
    text += fmt::format("{:04}-{:02}-{:02}", date->year, date->month, date->day);
  }
}

/// A file in memory that the library opens by name.
class MemoryFile {
 public:
  MemoryFile() : fd_(::memfd_create("ceems.xlsx", MFD_CLOEXEC)) {}
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }

  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", fd_); }

  [[nodiscard]] std::string content() const {
    std::string content;
    std::array<char, 1U << 16U> piece{};
    for (off_t at = 0;;) {
      const ssize_t size = ::pread(fd_, piece.data(), piece.size(), at);
      if (size <= 0) {
        return content;
      }
      content.append(piece.data(), static_cast<std::size_t>(size));
      at += size;
    }
  }

 private:
  int fd_;
};

/// Writes sheets, and remembers the first error.
class SheetWriter {
 public:
  SheetWriter(lxw_workbook* book, const std::string& name)
      : sheet_(::workbook_add_worksheet(book, name.c_str())) {
    error_ = sheet_ == nullptr ? LXW_ERROR_MEMORY_MALLOC_FAILED : LXW_NO_ERROR;
  }

  void text(lxw_row_t row, lxw_col_t column, std::string_view text, lxw_format* format = nullptr) {
    // Longer ones are errors of the format.
    const std::string part = clean_text(text.substr(0, kMaxText));
    note(::worksheet_write_string(sheet_, row, column, part.c_str(), format));
  }
  void number(lxw_row_t row, lxw_col_t column, double value) {
    note(::worksheet_write_number(sheet_, row, column, value, nullptr));
  }
  void date(lxw_row_t row, lxw_col_t column, const Date& date, lxw_format* format) {
    lxw_datetime time{.year = date.year,
                      .month = static_cast<int>(date.month),
                      .day = static_cast<int>(date.day),
                      .hour = 0,
                      .min = 0,
                      .sec = 0};
    note(::worksheet_write_datetime(sheet_, row, column, &time, format));
  }
  void width(lxw_col_t column, double characters) {
    note(::worksheet_set_column(sheet_, column, column, characters, nullptr));
  }
  void keep_head() { ::worksheet_freeze_panes(sheet_, 1, 0); }

  [[nodiscard]] lxw_error error() const { return error_; }

 private:
  void note(lxw_error error) { error_ = error_ == LXW_NO_ERROR ? error : error_; }

  lxw_worksheet* sheet_;
  lxw_error error_;
};

struct Formats {
  lxw_format *head, *date;
};

lxw_error write_table(lxw_workbook* book, const Table& table, const Formats& formats) {
  SheetWriter sheet(book, table.name);
  if (sheet.error() != LXW_NO_ERROR) {
    return sheet.error();
  }
  const bool any = !table.rows.empty();
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    const auto column = static_cast<lxw_col_t>(i);
    sheet.text(0, column, table.columns[i], formats.head);
    const bool text = any && std::holds_alternative<std::string>(table.rows.front()[i]);
    sheet.width(column, text ? kTextWidth : kNumberWidth);
  }
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto row = static_cast<lxw_row_t>(i + 1);
    for (std::size_t j = 0; j < table.rows[i].size(); ++j) {
      const auto column = static_cast<lxw_col_t>(j);
      const Cell& cell = table.rows[i][j];
      if (const auto* text = std::get_if<std::string>(&cell)) {
        sheet.text(row, column, *text);
      } else if (const auto* number = std::get_if<double>(&cell)) {
        sheet.number(row, column, *number);
      } else if (const auto* date = std::get_if<Date>(&cell)) {
        sheet.date(row, column, *date, formats.date);
      }
    }
  }
  sheet.keep_head();
  return sheet.error();
}

lxw_error write_notes(lxw_workbook* book, const Notes& notes, lxw_format* bold) {
  SheetWriter sheet(book, "Notes");
  if (sheet.error() != LXW_NO_ERROR) {
    return sheet.error();
  }
  sheet.width(0, kTextWidth);
  sheet.width(1, kNoteWidth);
  lxw_row_t row = 0;
  for (const auto& [subject, text] : notes) {
    sheet.text(row, 0, subject, bold);
    sheet.text(row, 1, text);
    ++row;
  }
  return sheet.error();
}

}  // namespace

std::string to_csv(const Table& table) {
  std::string text;
  const auto append = [&text](const auto& cells, const auto& append_cell) {
    bool first = true;
    for (const auto& cell : cells) {
      text += first ? "" : ",";
      first = false;
      append_cell(cell);
    }
    text += "\r\n";
  };
  append(table.columns, [&text](const std::string& name) { text += csv_cell(name); });
  for (const auto& row : table.rows) {
    append(row, [&text](const Cell& cell) { append_csv_cell(text, cell); });
  }
  return text;
}

Result<std::string> to_xlsx(const Table& table, const Notes& notes) {
  return to_xlsx(std::span(&table, 1), notes);
}

Result<std::string> to_xlsx(std::span<const Table> tables, const Notes& notes) {
  const MemoryFile file;
  const std::string path = file.path();
  lxw_workbook* book = file.is_open() ? ::workbook_new(path.c_str()) : nullptr;
  if (book == nullptr) {
    return fail(ErrorCode::kUnavailable, "no memory for a workbook");
  }
  const Formats formats{.head = ::workbook_add_format(book), .date = ::workbook_add_format(book)};
  ::format_set_bold(formats.head);
  ::format_set_num_format(formats.date, "yyyy-mm-dd");
  lxw_error error = LXW_NO_ERROR;
  for (const Table& table : tables) {
    if (error == LXW_NO_ERROR) {
      error = write_table(book, table, formats);
    }
  }
  if (error == LXW_NO_ERROR) {
    error = write_notes(book, notes, formats.head);
  }
  const lxw_error closed = ::workbook_close(book);  // frees it in any case
  if (error == LXW_NO_ERROR) {
    error = closed;
  }
  if (error != LXW_NO_ERROR) {
    return fail(ErrorCode::kUnavailable, "cannot write a workbook: {}", ::lxw_strerror(error));
  }
  return file.content();
}

}  // namespace ceems::report
