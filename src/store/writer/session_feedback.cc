#include "store/writer/session_feedback.h"

#include "base/utf8.h"

namespace ceems::store {

Result<> SessionFeedback::answer(const Feedback& feedback) {
  Sql insert(session_->dialect(),
             "INSERT INTO ceems_feedback (cluster_id, uuid, started_at_ts, rule, username, answer,"
             " answered_ms) VALUES (");
  insert.value(clean_text(feedback.key.cluster_id)).add(",");
  insert.value(clean_text(feedback.key.uuid)).add(",").value(feedback.key.started_at_ts).add(",");
  insert.value(clean_text(feedback.rule)).add(",").value(clean_text(feedback.username)).add(",");
  insert.value(clean_text(feedback.answer)).add(",").value(feedback.answered_ms);
  insert.add(
      ") ON CONFLICT (cluster_id, uuid, started_at_ts, rule, username) DO UPDATE SET"
      " answer = excluded.answer, answered_ms = excluded.answered_ms");
  return session_->run(insert, {});
}

}  // namespace ceems::store
