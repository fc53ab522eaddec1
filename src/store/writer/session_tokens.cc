#include "store/writer/session_tokens.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/utf8.h"

namespace ceems::store {

Result<std::optional<std::string>> SessionTokens::text_of(const Sql& statement) {
  std::optional<std::string> text;
  CEEMS_TRY(
      session_->run(statement, [&text](std::size_t, const AnswerRow& row) { text = row.text(0); }));
  return text;
}

Result<bool> SessionTokens::add(const Token& token, std::size_t limit) {
  Sql insert =
      sql("INSERT INTO ceems_tokens (id, hash, username, name, scope, created_ms, expires_ms,"
          " used_ms) SELECT ");
  insert.value(token.id).add(",").value(token.hash).add(",").value(clean_text(token.username));
  insert.add(",").value(clean_text(token.name)).add(",").value(token.scope).add(",");
  insert.value(token.created_ms).add(",").value(token.expires_ms).add(",").value(token.used_ms);
  insert.add(" WHERE (SELECT count(*) FROM ceems_tokens WHERE username = ");
  insert.value(clean_text(token.username)).add(") < ").value(static_cast<std::int64_t>(limit));
  CEEMS_TRY(added, text_of(insert.add(" RETURNING id")));
  return added.has_value();
}

Result<std::optional<std::string>> SessionTokens::remove(
    const std::string& id, const std::optional<std::string>& username) {
  Sql remove = sql("DELETE FROM ceems_tokens WHERE id = ");
  remove.value(clean_text(id));
  if (username) {
    remove.add(" AND username = ").value(clean_text(*username));
  }
  return text_of(remove.add(" RETURNING username"));
}

Result<> SessionTokens::remove_expired(const std::string& username, std::int64_t before_ms) {
  Sql remove = sql("DELETE FROM ceems_tokens WHERE username = ");
  remove.value(clean_text(username)).add(" AND expires_ms < ").value(before_ms);
  return session_->run(remove, {});
}

Result<> SessionTokens::note_use(const std::string& id, std::int64_t now_ms) {
  Sql note = sql("UPDATE ceems_tokens SET used_ms = ");
  note.value(now_ms).add(" WHERE id = ").value(clean_text(id)).add(" AND used_ms < ");
  return session_->run(note.value(now_ms), {});
}

}  // namespace ceems::store
