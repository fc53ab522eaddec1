#include "store/writer/session_outbox.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/utf8.h"

namespace ceems::store {
namespace {

constexpr std::size_t kIdsAtOnce = 500;

/// Sentinel rows that record when each kind of mail was enabled.
constexpr std::string_view kNobody;

/// Calls `work` with parts of the list that a statement can take.
template <typename Work>
Result<> in_parts(const std::vector<std::string>& all, const Work& work) {
  for (std::size_t begin = 0; begin < all.size(); begin += kIdsAtOnce) {
    const auto count = std::min(kIdsAtOnce, all.size() - begin);
    const auto part = std::span(all).subspan(begin, count);
    CEEMS_TRY(work(std::vector<std::string>(part.begin(), part.end())));
  }
  return {};
}

}  // namespace

std::string_view to_string(MailState state) {
  constexpr std::array<std::string_view, 6> kNames{"queued",  "handed",  "sent",
                                                   "refused", "unknown", "dry"};
  return kNames.at(static_cast<std::size_t>(state));
}

Result<> SessionOutbox::run_alone(const Sql& statement) {
  return store::in_transaction(*session_, [&] { return run(statement); });
}

Result<std::vector<OutgoingMail>> SessionOutbox::read(const Sql& condition) {
  std::vector<OutgoingMail> mails;
  Sql query =
      sql("SELECT id, kind, username, recipient, digest, body, received_ms, due_ms, tries"
          " FROM ceems_outbox WHERE state = 'queued'");
  query.append(condition);
  CEEMS_TRY(session_->run(query, [&mails](std::size_t, const AnswerRow& row) {
    mails.push_back({.id = std::string(row.text(0)),
                     .kind = std::string(row.text(1)),
                     .username = std::string(row.text(2)),
                     .recipient = std::string(row.text(3)),
                     .digest = std::string(row.text(4)),
                     .body = std::string(row.text(5)),
                     .received_ms = row.integer(6),
                     .due_ms = row.integer(7),
                     .tries = row.integer(8)});
  }));
  return mails;
}

Result<std::int64_t> SessionOutbox::number(const Sql& query) {
  std::int64_t value = 0;
  CEEMS_TRY(session_->run(query,
                          [&value](std::size_t, const AnswerRow& row) { value = row.integer(0); }));
  return value;
}

Result<std::size_t> SessionOutbox::add(const std::vector<OutgoingMail>& mails) {
  std::int64_t added = 0;
  CEEMS_TRY(store::in_transaction(*session_, [&]() -> Result<> {
    CEEMS_TRY(before, number(sql("SELECT count(*) FROM ceems_outbox")));
    for (const OutgoingMail& mail : mails) {
      Sql insert =
          sql("INSERT INTO ceems_outbox (id, kind, state, username, recipient, digest, body,"
              " received_ms, due_ms, done_ms, tries) VALUES (");
      insert.value(clean_text(mail.id)).add(",").value(mail.kind).add(",'queued',");
      insert.value(clean_text(mail.username)).add(",").value(clean_text(mail.recipient)).add(",");
      insert.value(clean_text(mail.digest)).add(",").value(clean_text(mail.body)).add(",");
      insert.value(mail.received_ms).add(",").value(mail.due_ms);
      insert.add(",0,0) ON CONFLICT DO NOTHING");
      CEEMS_TRY(run(insert));
    }
    CEEMS_TRY(after, number(sql("SELECT count(*) FROM ceems_outbox")));
    added = after - before;
    return {};
  }));
  return static_cast<std::size_t>(added);
}

Result<std::vector<OutgoingMail>> SessionOutbox::due(std::int64_t now_ms, std::size_t limit) {
  Sql condition = sql(" AND due_ms <= ");
  condition.value(now_ms).add(" ORDER BY due_ms, id LIMIT ");
  condition.value(static_cast<std::int64_t>(limit));
  return read(condition);
}

Result<std::vector<OutgoingMail>> SessionOutbox::of_digest(const std::string& digest) {
  return read(sql(" AND digest = ").value(digest).add(" ORDER BY id"));
}

Result<bool> SessionOutbox::hand_over(const std::vector<std::string>& ids) {
  bool all = true;
  auto done = store::in_transaction(*session_, [&]() -> Result<> {
    std::int64_t queued = 0;
    CEEMS_TRY(in_parts(ids, [&](const std::vector<std::string>& part) -> Result<> {
      Sql count = sql("SELECT count(*) FROM ceems_outbox WHERE state = 'queued'");
      CEEMS_TRY(found, number(count.and_in("id", part)));
      queued += found;
      Sql update = sql("UPDATE ceems_outbox SET state = 'handed' WHERE state = 'queued'");
      return run(update.and_in("id", part));
    }));
    all = std::cmp_equal(queued, ids.size());
    return all ? Result<>() : fail(ErrorCode::kInvalidArgument, "not queued");
  });
  if (!done && all) {
    return fail(std::move(done).error());
  }
  return all;
}

Result<> SessionOutbox::finish(const std::vector<std::string>& ids,
                               MailState state,
                               std::int64_t now_ms) {
  return store::in_transaction(*session_, [&] {
    return in_parts(ids, [&](const std::vector<std::string>& part) {
      Sql update = sql("UPDATE ceems_outbox SET body = '', state = ");
      update.value(to_string(state)).add(", done_ms = ").value(now_ms);
      update.add(" WHERE state IN ('queued', 'handed')");
      return run(update.and_in("id", part));
    });
  });
}

Result<> SessionOutbox::postpone(const std::vector<std::string>& ids,
                                 std::int64_t due_ms,
                                 bool tried) {
  return store::in_transaction(*session_, [&] {
    return in_parts(ids, [&](const std::vector<std::string>& part) {
      Sql update = sql("UPDATE ceems_outbox SET state = 'queued', due_ms = ");
      update.value(due_ms).add(tried ? ", tries = tries + 1" : "");
      update.add(" WHERE state IN ('queued', 'handed')");
      return run(update.and_in("id", part));
    });
  });
}

Result<std::vector<std::string>> SessionOutbox::end_interrupted(std::int64_t now_ms) {
  std::vector<std::string> ids;
  CEEMS_TRY(store::in_transaction(*session_, [&]() -> Result<> {
    CEEMS_TRY(session_->run(
        sql("SELECT id FROM ceems_outbox WHERE state = 'handed' ORDER BY id"),
        [&ids](std::size_t, const AnswerRow& row) { ids.emplace_back(row.text(0)); }));
    return run(sql("UPDATE ceems_outbox SET state = 'unknown', body = '', done_ms = ")
                   .value(now_ms)
                   .add(" WHERE state = 'handed'"));
  }));
  return ids;
}

Result<std::int64_t> SessionOutbox::queued() {
  return number(sql("SELECT count(*) FROM ceems_outbox WHERE state = 'queued'"));
}

Result<std::int64_t> SessionOutbox::dry_people(std::int64_t since_ms) {
  return number(
      sql("SELECT count(DISTINCT username) FROM ceems_outbox WHERE state = 'dry' AND done_ms >= ")
          .value(since_ms));
}

Result<std::int64_t> SessionOutbox::first_started(std::string_view what, std::int64_t now_ms) {
  Sql insert = sql("INSERT INTO ceems_contacts (username, rule, told_ms, muted_until_ms) VALUES (");
  insert.value(kNobody).add(",").value(what).add(",").value(now_ms);
  CEEMS_TRY(run_alone(insert.add(",0) ON CONFLICT DO NOTHING")));
  return number(sql("SELECT told_ms FROM ceems_contacts WHERE username = ")
                    .value(kNobody)
                    .add(" AND rule = ")
                    .value(what));
}

Result<> SessionOutbox::note_told(const std::string& username,
                                  const std::vector<std::string>& rules,
                                  std::int64_t now_ms) {
  if (username.empty() || rules.empty()) {
    return {};
  }
  return store::in_transaction(*session_, [&]() -> Result<> {
    for (const std::string& rule : rules) {
      Sql put =
          sql("INSERT INTO ceems_contacts (username, rule, told_ms, muted_until_ms) VALUES (");
      put.value(clean_text(username)).add(",").value(clean_text(rule)).add(",").value(now_ms);
      put.add(",0) ON CONFLICT (username, rule) DO UPDATE SET told_ms = ").value(now_ms);
      CEEMS_TRY(run(put));
    }
    return {};
  });
}

Result<std::vector<std::string>> SessionOutbox::muted(const std::string& username,
                                                      std::int64_t now_ms) {
  std::vector<std::string> rules;
  Sql query = sql("SELECT rule FROM ceems_contacts WHERE username = ");
  query.value(username).add(" AND muted_until_ms > ").value(now_ms).add(" ORDER BY rule");
  CEEMS_TRY(session_->run(
      query, [&rules](std::size_t, const AnswerRow& row) { rules.emplace_back(row.text(0)); }));
  return rules;
}

Result<> SessionOutbox::mute(const std::string& username,
                             const std::string& rule,
                             std::int64_t until_ms) {
  if (username.empty() || rule.empty()) {
    return fail(ErrorCode::kInvalidArgument, "expected a user and a rule");
  }
  Sql put = sql("INSERT INTO ceems_contacts (username, rule, told_ms, muted_until_ms) VALUES (");
  put.value(clean_text(username)).add(",").value(clean_text(rule)).add(",0,").value(until_ms);
  put.add(") ON CONFLICT (username, rule) DO UPDATE SET muted_until_ms = ").value(until_ms);
  return run_alone(put);
}

Result<> SessionOutbox::purge(std::int64_t mails_ms, std::int64_t contacts_ms) {
  Sql mails = sql("DELETE FROM ceems_outbox WHERE state NOT IN ('queued', 'handed')");
  mails.add(" AND (done_ms < ").value(contacts_ms);
  mails.add(" OR (kind <> 'budget' AND done_ms < ").value(mails_ms).add("))");
  Sql contacts = sql("DELETE FROM ceems_contacts WHERE username <> '' AND ((told_ms < ");
  contacts.value(contacts_ms).add(" AND muted_until_ms < ").value(contacts_ms);
  contacts.add(
      ") OR (EXISTS (SELECT 1 FROM users) AND NOT EXISTS"
      " (SELECT 1 FROM users WHERE users.name = ceems_contacts.username)))");
  return store::in_transaction(*session_, [&]() -> Result<> {
    auto done = run(mails);
    return done ? run(contacts) : done;
  });
}

}  // namespace ceems::store
