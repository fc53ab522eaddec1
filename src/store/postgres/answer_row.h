#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "store/postgres/connection.h"
#include "store/sql/session.h"

namespace ceems::store::postgres {

/// A row of an answer, which has to outlive it.
class Row final : public AnswerRow {
 public:
  Row(const Answer& answer, int row) : answer_(&answer), row_(row) {}
  [[nodiscard]] std::string_view text(std::size_t column) const override {
    return answer_->text(row_, column);
  }
  [[nodiscard]] std::int64_t integer(std::size_t column) const override {
    return answer_->integer(row_, column);
  }

 private:
  const Answer* answer_;
  int row_;
};

}  // namespace ceems::store::postgres
