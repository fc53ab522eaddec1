#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/sql/session.h"
#include "store/tokens.h"

namespace ceems::store {

/// The writer of tokens of every database, with a session of its own.
class SessionTokens final : public TokenWriter {
 public:
  explicit SessionTokens(std::unique_ptr<Session> session) : session_(std::move(session)) {}

  Result<bool> add(const Token& token, std::size_t limit) override;
  Result<std::optional<std::string>> remove(const std::string& id,
                                            const std::optional<std::string>& username) override;
  Result<> remove_expired(const std::string& username, std::int64_t before_ms) override;
  Result<> note_use(const std::string& id, std::int64_t now_ms) override;

 private:
  [[nodiscard]] Sql sql(std::string_view text) const { return {session_->dialect(), text}; }
  /// The text of the only row; nothing without a row.
  Result<std::optional<std::string>> text_of(const Sql& statement);

  std::unique_ptr<Session> session_;
};

}  // namespace ceems::store
