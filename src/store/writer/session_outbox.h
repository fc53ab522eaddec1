#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/outbox.h"
#include "store/sql/session.h"

namespace ceems::store {

/// The outbox of every database, with a session of its own: it does not wait for windows that are
/// being written, except for the lock of the database.
class SessionOutbox final : public Outbox {
 public:
  explicit SessionOutbox(std::unique_ptr<Session> session) : session_(std::move(session)) {
    session_->set_leaves_usage(true);
  }

  Result<std::size_t> add(const std::vector<OutgoingMail>& mails) override;
  Result<std::vector<OutgoingMail>> due(std::int64_t now_ms, std::size_t limit) override;
  Result<std::vector<OutgoingMail>> of_digest(const std::string& digest) override;
  Result<bool> hand_over(const std::vector<std::string>& ids) override;
  Result<> finish(const std::vector<std::string>& ids,
                  MailState state,
                  std::int64_t now_ms) override;
  Result<> postpone(const std::vector<std::string>& ids, std::int64_t due_ms, bool tried) override;
  Result<std::vector<std::string>> end_interrupted(std::int64_t now_ms) override;
  Result<std::int64_t> queued() override;
  Result<std::int64_t> dry_people(std::int64_t since_ms) override;
  Result<std::int64_t> first_started(std::string_view what, std::int64_t now_ms) override;
  Result<> note_told(const std::string& username,
                     const std::vector<std::string>& rules,
                     std::int64_t now_ms) override;
  Result<std::vector<std::string>> muted(const std::string& username, std::int64_t now_ms) override;
  Result<> mute(const std::string& username,
                const std::string& rule,
                std::int64_t until_ms) override;
  Result<> purge(std::int64_t mails_ms, std::int64_t contacts_ms) override;

 private:
  [[nodiscard]] Sql sql(std::string_view text) const { return {session_->dialect(), text}; }
  Result<> run(const Sql& sql) { return session_->run(sql, {}); }
  Result<> run_alone(const Sql& statement);
  Result<std::vector<OutgoingMail>> read(const Sql& condition);
  Result<std::int64_t> number(const Sql& query);

  std::unique_ptr<Session> session_;
};

}  // namespace ceems::store
