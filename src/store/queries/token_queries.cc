// Personal API tokens (store/tokens.h).
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "store/queries/sql_reader.h"
#include "store/tokens.h"

namespace ceems::store {
namespace {

constexpr std::string_view kTokenColumns =
    "SELECT id, hash, username, name, scope, created_ms, expires_ms, used_ms FROM ceems_tokens";

Result<std::vector<Token>> tokens_in(Cursor& rows) {
  std::vector<Token> tokens;
  while (true) {
    CEEMS_TRY(row, rows.next());
    if (!row) {
      return tokens;
    }
    tokens.push_back({.id = std::string(rows.text(0)),
                      .hash = std::string(rows.text(1)),
                      .username = std::string(rows.text(2)),
                      .name = std::string(rows.text(3)),
                      .scope = std::string(rows.text(4)),
                      .created_ms = rows.integer(5),
                      .expires_ms = rows.integer(6),
                      .used_ms = rows.integer(7)});
  }
}

}  // namespace

Result<std::optional<Token>> SqlReader::find_token(const std::string& hash) {
  Sql query = query_of(kTokenColumns);
  query.add(" WHERE hash = ").value(clean_text(hash));
  CEEMS_TRY(rows, open(query, kShortLimit));
  CEEMS_TRY(tokens, tokens_in(*rows));
  return tokens.empty() ? std::nullopt : std::optional(std::move(tokens.front()));
}

Result<std::vector<Token>> SqlReader::tokens_of(const std::optional<std::string>& username) {
  Sql query = query_of(kTokenColumns);
  if (username) {
    query.add(" WHERE username = ").value(clean_text(*username));
  }
  query.add(" ORDER BY username, created_ms, id");
  CEEMS_TRY(rows, open(query, kShortLimit));
  return tokens_in(*rows);
}

}  // namespace ceems::store
